/** One line of the audit. */
export interface Check {
  readonly label: string;
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
  /** Whether it has to hold on every machine: a plan that could not be kept is no excuse for it. */
  readonly atAnyPace: boolean;
}

/** Makes a line that is right when both values read the same, provided that the plan could be kept. */
export function check(label: string, expected: string | number, actual: string | number): Check {
  return line(label, expected, actual, false);
}

/** Makes a line that is right when both values read the same, however slow the machine is: what the lock promises. */
export function promise(label: string, expected: string | number, actual: string | number): Check {
  return line(label, expected, actual, true);
}

/** Puts names into one cell of the audit. */
export function listed(names: readonly string[]): string {
  return names.length === 0 ? "nobody" : names.join(", ");
}

function line(label: string, expected: string | number, actual: string | number, atAnyPace: boolean): Check {
  const wanted = String(expected);
  const found = String(actual);
  return { label, expected: wanted, actual: found, ok: wanted === found, atAnyPace };
}
