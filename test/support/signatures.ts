import { createHash, createHmac } from "node:crypto";

/** A request as a service receives it. */
export interface SignedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly path: string;
  readonly body: string;
}

/** What a service knows of a caller. */
export interface KnownCaller {
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

const toleratedMs = 5 * 60_000;

/**
 * Checks a POST's signature as AWS describes it for services, without any signer: gives the error that DynamoDB would answer
 * with, or undefined where the signature is right.
 */
export function signatureFault(
  { headers, path, body }: SignedRequest,
  callers: Readonly<Record<string, KnownCaller>>,
  now: number = Date.now(),
): string | undefined {
  const authorization =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/;
  const match = authorization.exec(String(headers.authorization));
  if (match === null) return "MissingAuthenticationTokenException";
  const [, id = "", day = "", region = "", service = "", names = "", signature = ""] = match;
  const caller = callers[id];
  if (caller === undefined) return "UnrecognizedClientException";
  if (headers["x-amz-security-token"] !== caller.sessionToken) return "UnrecognizedClientException";
  const time = String(headers["x-amz-date"]);
  const signedFor = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
  if (!(Math.abs(signedFor - now) <= toleratedMs)) return "InvalidSignatureException";
  const mustBeSigned = Object.keys(headers).filter((name) => name === "host" || name.startsWith("x-amz-"));
  if (!mustBeSigned.every((name) => names.split(";").includes(name))) return "IncompleteSignatureException";

  const lines = names
    .split(";")
    .map((name) => `${name}:${String(headers[name]).trim().replace(/\s+/g, " ")}\n`);
  const canonical = ["POST", path, "", lines.join(""), names, sha256(body)].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(
    (outer, part) => createHmac("sha256", outer).update(part).digest(),
    `AWS4${caller.secretAccessKey}`,
  );
  const expected = createHmac("sha256", key).update(toSign).digest("hex");
  return signature === expected && service === "dynamodb" ? undefined : "InvalidSignatureException";
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
