/** Numbers among a command's arguments: refused by the option's name, with what is allowed. */

/** A whole number. */
export function wholeIn(text: string, option: string, least: number, most: number): number {
  if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw new Error(`${option} is ${text}; allowed: a whole number from ${least} to ${most}`);
}

/** A number, with a fraction or without. */
export function numberIn(text: string, option: string, least: number, most: number): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw new Error(`${option} is ${text}; allowed: a number from ${least} to ${most}`);
}
