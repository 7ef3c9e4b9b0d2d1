export { exitCodes } from "./exit-codes.ts";
export { runCommandLine, type Surroundings } from "./run.ts";
