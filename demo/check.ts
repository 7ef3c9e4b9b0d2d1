/** One line of the audit. */
export interface Check {
  readonly label: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
}

/** Makes a line that is right when both values read the same. */
export function check(label: string, expected: string | number, actual: string | number): Check {
  const wanted = String(expected);
  const found = String(actual);
  return { label, expected: wanted, actual: found, ok: wanted === found };
}
