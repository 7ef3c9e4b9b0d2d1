/**
 * What the keys of all contract tests start with, where this variable is set: in a table that others use as well, the
 * tests keep to keys of their own.
 */
export const contractPrefixVariable = "LEASEHOLD_CONTRACT_KEY_PREFIX";

let keys = 0;

/** A key that no other test uses. */
export function newKey(contract: string): string {
  keys += 1;
  return `${process.env[contractPrefixVariable] ?? ""}${contract}/${Date.now()}/${keys}`;
}
