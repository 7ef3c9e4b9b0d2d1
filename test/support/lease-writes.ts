/** What one of a lease's writes does. */
export type LeaseWrite = "acquire" | "takeOver" | "renew" | "end" | "other";

/** Tells a lease's writes apart, as they are sent, by the values that they bring. */
export function kindOf({ values }: { readonly values: Readonly<Record<string, unknown>> }): LeaseWrite {
  if (values[":acquiredAt"] !== undefined) return values[":ifVersion"] === undefined ? "acquire" : "takeOver";
  if (values[":version"] !== undefined) return "renew";
  return values[":releasedToken"] !== undefined && values[":ttl"] !== undefined ? "end" : "other";
}

/** Whether a write is of this kind. */
export const isA =
  (kind: LeaseWrite) =>
  (write: Parameters<typeof kindOf>[0]): boolean =>
    kindOf(write) === kind;
