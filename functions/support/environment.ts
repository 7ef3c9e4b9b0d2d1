/** Reads a setting that the function cannot do without. Throws an error that names it. */
export function required(name: string): string {
  const value = optional(name);
  if (value === undefined)
    throw new Error(`the environment variable ${name} is not set: the function needs it`);
  return value;
}

/** Reads a setting; one that is empty counts as absent, since infrastructure code often cannot leave it out. */
export function optional(name: string): string | undefined {
  const value = process.env[name];
  return value === "" ? undefined : value;
}

/** Reads a whole number above 0, or from 0. Throws an error that names the setting. */
export function wholeNumber(name: string, fallback: number, least: 0 | 1 = 1): number {
  const text = optional(name);
  if (text === undefined) return fallback;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(
    `the environment variable ${name} is ${JSON.stringify(text)}; allowed: a whole number ${least === 0 ? "from 0" : "above 0"}`,
  );
}

/**
 * Makes something at its first use and keeps it: an execution environment reads its settings and opens its connections
 * once, and a module that is only imported needs neither. A maker that throws is asked again next time.
 */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
