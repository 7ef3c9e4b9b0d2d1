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

/** Gives the headers of a request to DynamoDB that is signed for a moment, in epoch milliseconds. Sends nothing. */
export function signedHeaders(
  { region, host, path }: Destination,
  operation: string,
  body: string,
  { accessKeyId, secretAccessKey, sessionToken }: Signer,
  at: number,
): Record<string, string> {
  const headers = {
    Host: host,
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": `DynamoDB_20120810.${operation}`,
    "X-Amz-Date": new Date(at).toISOString().replace(/[:-]|\.\d+/g, ""),
    ...(sessionToken === undefined ? {} : { "X-Amz-Security-Token": sessionToken }),
  };
  const request = { service: "dynamodb", region, host, method: "POST", path, headers, body };
  return aws4.sign(request, { accessKeyId, secretAccessKey }).headers as Record<string, string>;
}
