import { parseArgs } from "node:util";
import { Ending, exitCodes } from "./endings.ts";

/** The command line's options. */
export interface DemonstrationOptions {
  /** Whether every event and every check is shown. */
  readonly all: boolean;
  /** By how much the plan's times are stretched; undefined to go by the machine. */
  readonly stretch: number | undefined;
}

const usage = `npm start                        the incidents, and one line a system
npm start -- --all               every event and every check
npm start -- --stretch <number>  the plan's times so many times as long, from 1 to 20, whatever this machine's speed`;

const mostStretch = 20;

/** Reads the command line. Throws an Ending that says what there is, for what is not known. */
export function readOptions(args: readonly string[]): DemonstrationOptions {
  const { all, stretch } = parsed(args);
  const factor = stretch === undefined ? undefined : Number(stretch);
  if (factor !== undefined && !(factor >= 1 && factor <= mostStretch)) {
    throw new Ending(
      `--stretch takes a number from 1 to ${mostStretch}, not "${stretch}".\n\n${usage}`,
      exitCodes.failed,
    );
  }
  return { all, stretch: factor };
}

function parsed(args: readonly string[]): { readonly all: boolean; readonly stretch: string | undefined } {
  const options = { all: { type: "boolean", default: false }, stretch: { type: "string" } } as const;
  try {
    const { all, stretch } = parseArgs({ args: [...args], options }).values;
    return { all, stretch };
  } catch (error) {
    throw new Ending(`${(error as Error).message}\n\n${usage}`, exitCodes.failed);
  }
}
