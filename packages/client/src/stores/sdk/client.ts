import { createHash, createHmac, createSecretKey, type Hash, type Hmac, type KeyObject } from "node:crypto";
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "../../base/errors.ts";

/**
 * Creates the client for users who do not bring their own.
 *
 * DynamoDB answers in milliseconds. So an answer that takes seconds counts as lost, and the SDK tries again on another
 * connection. By default the SDK would wait for ever. Connections are kept alive. For less CPU, the middleware of an
 * operation is resolved once, for calls without options, and the keys of signatures are kept. Throws
 * InvalidOptionsError if the SDK is too old.
 */
export function createDynamoDBClient(): DynamoDBClient {
  const client = new DynamoDBClient({
    cacheMiddleware: true,
    sha256: Sha256 as NonNullable<DynamoDBClientConfig["sha256"]>,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
  });
  // An older SDK takes the settings themselves for the handler.
  if (typeof client.config.requestHandler.handle !== "function") throw tooOldSdk();
  return client;
}

/** The error of an SDK below the range of the peer dependency. */
export function tooOldSdk(): InvalidOptionsError {
  const advice = "npm install @aws-sdk/client-dynamodb@latest";
  return new InvalidOptionsError("the version of @aws-sdk/client-dynamodb", undefined, "3.521.0 or newer", {
    finding: "is too old",
    advice,
  });
}

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
