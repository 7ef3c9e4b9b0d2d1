/** How the demonstration is called, and how it ends. */
import { constants } from "node:os";
import { parseArgs } from "node:util";

/** The command line's options. */
export interface DemonstrationOptions {
  /** Whether every event and every check is shown. */
  readonly all: boolean;
  /** By how much the plan's times are stretched; undefined to go by the machine. */
  readonly stretch: number | undefined;
  /** Whether the console is served at the end, until Ctrl-C. */
  readonly console: boolean;
}

const usage = `npm start                        the incidents, and one line a system
npm start -- --all               every event and every check
npm start -- --console           serve the console at the end, until Ctrl-C; a terminal gets it anyway
npm start -- --no-console        end at once
npm start -- --stretch <number>  the plan's times so many times as long, from 1 to 20, whatever this machine's speed`;

const mostStretch = 20;

/** Reads the command line. Throws an Ending that says what there is, for what is not known. */
export function readOptions(args: readonly string[]): DemonstrationOptions {
  const { all, stretch, console = process.stdout.isTTY === true } = parsed(args);
  const factor = stretch === undefined ? undefined : Number(stretch);
  if (factor !== undefined && !(factor >= 1 && factor <= mostStretch)) {
    throw new Ending(
      `--stretch takes a number from 1 to ${mostStretch}, not "${stretch}".\n\n${usage}`,
      exitCodes.failed,
    );
  }
  return { all, stretch: factor, console };
}

function parsed(args: readonly string[]) {
  const options = {
    all: { type: "boolean", default: false },
    stretch: { type: "string" },
    console: { type: "boolean" },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowNegative: true }).values;
  } catch (error) {
    throw new Ending(`${(error as Error).message}\n\n${usage}`, exitCodes.failed);
  }
}

/** What the demonstration exits with. A signal ends it with 128 and the signal's number, as shells count. */
export const exitCodes = {
  /** All checks hold. */
  holds: 0,
  /** A check failed, or the app could not be started. */
  failed: 1,
  /** Nothing failed, but the plan could not be kept: EX_TEMPFAIL of sysexits.h, which says that a retry may help. */
  tooSlow: 75,
} as const;

/** The demonstration cannot go on, for a reason that is no check's and no bug's. Its message is all there is to say. */
export class Ending extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "Ending";
    this.exitCode = exitCode;
  }
}

const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Rejects when the end is asked for: Ctrl-C, SIGTERM, a closed terminal, a reader that went away. Never resolves.
 * Later requests change nothing, so that they do not disturb the cleaning up.
 */
export function interruption(): Promise<never> {
  return new Promise((_, reject) => {
    for (const signal of endingSignals) {
      process.on(signal, () => reject(new Ending(`Ended by ${signal}.`, 128 + constants.signals[signal])));
    }
    for (const stream of [process.stdout, process.stderr]) {
      stream.on("error", () =>
        reject(new Ending("Ended: nobody reads this.", 128 + constants.signals.SIGPIPE)),
      );
    }
  });
}
