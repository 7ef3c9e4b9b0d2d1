// Errors of the program, as opposed to those of processes, files and connections. They are never swallowed.

const programmerErrors = [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError];

/** Whether an error is a fault of the program, and not of a process, a file or a connection. */
export function isProgrammerError(error: unknown): boolean {
  return programmerErrors.some((type) => error instanceof type);
}

/** Makes an uncaught exception of an error that no caller waits for. */
export function throwUncaught(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}

/** Calls a listener. What it throws becomes an uncaught exception, and changes nothing for the caller. */
export function callListener(call: () => void): void {
  try {
    call();
  } catch (error) {
    throwUncaught(error);
  }
}
