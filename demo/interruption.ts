import { constants } from "node:os";

/** The demonstration takes a third of it on a machine with nothing else to do. */
const longestMs = 120_000;

/** The demonstration was ended before its time. */
export class Interruption extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "Interruption";
    this.exitCode = exitCode;
  }
}

/** Rejects when somebody asks for the end (Ctrl-C, SIGTERM), or when the demonstration takes too long. Never resolves. */
export function interruption(): Promise<never> {
  return new Promise((_, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        reject(new Interruption(`Ended by ${signal}.`, 128 + constants.signals[signal]));
      });
    }
    const watchdog = setTimeout(() => {
      reject(new Interruption(`FAILED: it takes longer than ${longestMs / 1000} s.`, 1));
    }, longestMs);
    watchdog.unref();
  });
}
