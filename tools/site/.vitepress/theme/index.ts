// The machine's own fonts: nothing to load, and nothing to move when it has been loaded.
export { default } from "vitepress/theme-without-fonts";
