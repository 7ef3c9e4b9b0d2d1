import { createHash, createHmac, createSecretKey, type Hash, type Hmac, type KeyObject } from "node:crypto";

/** Texts and bytes, as the SDK's signer gives them. */
type Data = string | Uint8Array;

const keysOfTexts = new Map<string, KeyObject>();
/** Few secrets are in use at the same time. */
const mostTexts = 10;
/** The signer keeps a day's key in one array. */
const keysOfBytes = new WeakMap<Uint8Array, KeyObject>();

/**
 * SHA-256 for the SDK's signer, with keys as Node's own objects. The SDK's hash gives Node bytes, and Node 24 makes an
 * object of them each time: 20 to 40 µs, twice for each request.
 */
export class Sha256 {
  readonly #secret: Data | undefined;
  #hash: Hash | Hmac;

  constructor(secret?: Data) {
    this.#secret = secret;
    this.#hash = hashBy(secret);
  }

  update(data: Data): void {
    this.#hash.update(data);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    this.#hash = hashBy(this.#secret);
  }
}

function hashBy(secret: Data | undefined): Hash | Hmac {
  return secret === undefined ? createHash("sha256") : createHmac("sha256", keyOf(secret));
}

function keyOf(secret: Data): KeyObject {
  const known = typeof secret === "string" ? keysOfTexts.get(secret) : keysOfBytes.get(secret);
  if (known !== undefined) return known;
  const key = createSecretKey(Buffer.from(secret as Uint8Array));
  if (typeof secret !== "string") keysOfBytes.set(secret, key);
  else {
    if (keysOfTexts.size >= mostTexts) keysOfTexts.clear();
    keysOfTexts.set(secret, key);
  }
  return key;
}
