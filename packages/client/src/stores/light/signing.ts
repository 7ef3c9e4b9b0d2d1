import crypto, { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import querystring from "node:querystring";
import url from "node:url";
import type aws4 from "aws4";
import type { Clock } from "../../base/clock.ts";
import { InvalidOptionsError } from "../../base/errors.ts";
import { parseHttpDate } from "../sdk/transport.ts";

/** The credentials of a signature. */
export interface Signer {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** The signed parts besides the body. */
export interface Destination {
  readonly region: string;
  /** The host, with its port if that is not the protocol's own. */
  readonly host: string;
  readonly path: string;
}

/** Cache of signing keys, by their ingredients; each is good for a day. */
const keys = new Map<string, KeyObject>();
const mostSigningKeys = 100;

/** A request to sign. */
export interface Unsigned {
  readonly service: string;
  readonly region: string;
  readonly host?: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Returns a request's headers with its signature, for the time in its `X-Amz-Date`. */
export type Sign = (request: Unsigned, signer: Signer) => Record<string, string>;

let loading: Promise<Sign> | undefined;

/** Loads aws4, once for a process. Rejects with InvalidOptionsError if it is not installed: it is an optional peer. */
export function loadSign(): Promise<Sign> {
  loading ??= withBuiltinRequire(() => import("aws4")).then(
    ({ default: aws4 }) => signBy(aws4),
    refuseWithoutAws4,
  );
  return loading;
}

function refuseWithoutAws4(error: unknown): never {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "MODULE_NOT_FOUND" && code !== "ERR_MODULE_NOT_FOUND") throw error;
  const wording = { finding: "is not installed", advice: "npm install aws4", cause: error };
  throw new InvalidOptionsError(
    "the package aws4, which signs the light store's requests,",
    undefined,
    "1.13.2 or newer",
    wording,
  );
}

function signBy({ RequestSigner }: typeof aws4): Sign {
  /**
   * Signs as aws4 does, but keeps the key as Node's own object. aws4 keeps the key's bytes, and Node would make such an
   * object for each signature: two thirds of a signature's cost.
   */
  class CachingSigner extends RequestSigner {
    override signature(): string {
      const { secretAccessKey } = this.credentials;
      const parts = [this.getDate(), this.region, this.service, "aws4_request"];
      const id = [secretAccessKey, ...parts].join();
      let key = keys.get(id);
      if (key === undefined) {
        const bytes = parts.reduce<string | Buffer>(
          (outer, part) => createHmac("sha256", outer).update(part).digest(),
          `AWS4${secretAccessKey}`,
        );
        key = createSecretKey(bytes as Buffer);
        if (keys.size >= mostSigningKeys) keys.clear();
        keys.set(id, key);
      }
      return createHmac("sha256", key).update(this.stringToSign()).digest("hex");
    }
  }
  return (request, { accessKeyId, secretAccessKey }) => {
    const { headers = {} } = new CachingSigner({ ...request }, { accessKeyId, secretAccessKey }).sign();
    return headers as Record<string, string>;
  };
}

/** Returns the headers of a request to DynamoDB, signed for a moment in epoch milliseconds. Sends nothing. */
export function signedHeaders(
  sign: Sign,
  { region, host, path }: Destination,
  operation: string,
  body: string,
  signer: Signer,
  at: number,
): Record<string, string> {
  const { sessionToken } = signer;
  const headers = {
    Host: host,
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": `DynamoDB_20120810.${operation}`,
    "X-Amz-Date": new Date(at).toISOString().replace(/[:-]|\.\d+/g, ""),
    ...(sessionToken === undefined ? {} : { "X-Amz-Security-Token": sessionToken }),
  };
  return sign({ service: "dynamodb", region, host, method: "POST", path, headers, body }, signer);
}

/** A harmless difference from the service's time: DynamoDB accepts signatures within five minutes. */
const harmlessMs = 60_000;

/**
 * The time that requests are signed for: the wall clock's, corrected if the Date of an answer shows that it is wrong.
 */
export class SigningTime {
  readonly #clock: Clock;
  /** How far the service is ahead of the wall clock. */
  offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly now = (): number => this.#clock.now() + this.offsetMs;

  /** Takes note of the Date header of an answer. */
  note(date: string | undefined): void {
    const aheadMs = (parseHttpDate(date) ?? this.now()) - this.now();
    if (Math.abs(aheadMs) > harmlessMs) this.offsetMs += aheadMs;
  }
}

const modules: Readonly<Record<string, unknown>> = { crypto, querystring, url };

/**
 * Loads aws4 with a global `require` for the Node modules that it needs. aws4 is CommonJS. In a bundle that is an ES
 * module, nothing else would provide `require`, and aws4 would throw while it is loaded.
 */
async function withBuiltinRequire<T>(load: () => Promise<T>): Promise<T> {
  // The code that has called sees no `require`: in a bundle, aws4 is loaded between two turns of its own.
  await undefined;
  const scope = globalThis as { require?: (name: string) => unknown };
  if (scope.require !== undefined) return await load();
  scope.require = (name) => modules[name];
  try {
    return await load();
  } finally {
    delete scope.require;
  }
}
