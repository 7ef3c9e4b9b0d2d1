import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { removeRequire } from "./builtin-require.ts";

// The import above comes first: aws4 may ask for a `require` while it is loaded.

import aws4 from "aws4";

removeRequire();

/** Who signs. */
export interface Signer {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** What is signed besides the body. */
export interface Destination {
  readonly region: string;
  /** The host, with its port if that is not the protocol's own. */
  readonly host: string;
  readonly path: string;
}

/** Keys by what they are made of; each is good for a day. */
const keys = new Map<string, KeyObject>();
const mostKeys = 100;

/**
 * Signs as aws4 does, with a key that is kept as Node's own object. aws4 keeps its bytes, of which Node would make such an
 * object for each signature: two thirds of what a signature costs.
 */
class RequestSigner extends aws4.RequestSigner {
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
      if (keys.size >= mostKeys) keys.clear();
      keys.set(id, key);
    }
    return createHmac("sha256", key).update(this.stringToSign()).digest("hex");
  }
}

/** A request that is to be signed. */
export interface Unsigned {
  readonly service: string;
  readonly region: string;
  readonly host?: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Headers that aws4 would sign beside those that are given. @default - none is left out */
  readonly extraHeadersToIgnore?: Readonly<Record<string, boolean>>;
}

/** Gives a request's headers with its signature, for the moment that its `X-Amz-Date` names. */
export function signed(request: Unsigned, signer: Signer): Record<string, string> {
  const { accessKeyId, secretAccessKey } = signer;
  const { headers = {} } = new RequestSigner({ ...request }, { accessKeyId, secretAccessKey }).sign();
  return headers as Record<string, string>;
}

/** Gives the headers of a request to DynamoDB that is signed for a moment, in epoch milliseconds. Sends nothing. */
export function signedHeaders(
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
  return signed({ service: "dynamodb", region, host, method: "POST", path, headers, body }, signer);
}
