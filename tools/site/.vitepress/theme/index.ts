// The machine's own fonts: nothing to load, and nothing to move when it has been loaded.
import theme from "vitepress/theme-without-fonts";
import "./style.css";

export default theme;
