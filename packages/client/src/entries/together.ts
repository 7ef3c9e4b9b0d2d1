export { together } from "../core/together.ts";
