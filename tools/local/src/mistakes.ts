const mistakes = [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError];

/** Tells whether an error is a mistake in the program, and not what a process, a file or a connection can do. */
export function isMistake(error: unknown): boolean {
  return mistakes.some((type) => error instanceof type);
}

/** Lets an error that has no caller to reject to surface as an uncaught exception. */
export function surface(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
