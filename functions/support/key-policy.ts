/** A function was asked to touch a lock that is none of its business. Nothing was sent. */
export class KeyNotAllowedError extends Error {
  readonly key: string;
  /** What the key would have to be, or start with. */
  readonly allowed: string;

  constructor(key: string, allowed: string) {
    super(`the key ${JSON.stringify(key)} may not be touched by this function; allowed: ${allowed}`);
    this.name = "KeyNotAllowedError";
    this.key = key;
    this.allowed = allowed;
  }
}

/** Refuses keys outside a prefix; without a prefix every key is allowed. Throws {@link KeyNotAllowedError}. */
export function checkKeyPrefix(key: string, prefix: string | undefined): void {
  if (prefix === undefined || key.startsWith(prefix)) return;
  throw new KeyNotAllowedError(key, `keys that start with ${JSON.stringify(prefix)}`);
}

/** Refuses every key but one. Throws {@link KeyNotAllowedError}. */
export function checkKeyIs(key: string, only: string): void {
  if (key !== only) throw new KeyNotAllowedError(key, `the key ${JSON.stringify(only)}`);
}
