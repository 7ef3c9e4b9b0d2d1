// Errors of the system (files, processes, connections) as opposed to mistakes in the program, which are never swallowed.

/** Throws an error again if it is a mistake in the program. */
export function throwMistake(error: unknown): void {
  const { code } = Object(error) as { readonly code?: unknown };
  const isMistake = error instanceof TypeError || error instanceof RangeError || typeof code !== "string";
  if (isMistake) throw error;
}
