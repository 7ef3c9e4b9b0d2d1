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
