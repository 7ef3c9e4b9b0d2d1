import { constants } from "node:os";

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

/** Something that the plan needs did not come in its time. Nothing is wrong with what was seen until then. */
export class NotStaged extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotStaged";
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
