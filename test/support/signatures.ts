import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

/** A request as a service receives it. */
interface SignedRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly path: string;
  readonly body: string;
}

/** Whose request it is. */
export interface Caller {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** As the SDK's signer wants a hash. */
class Sha256 {
  readonly #hash;
  constructor(secret?: unknown) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as Buffer);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

/** What a request's Authorization has to be: that of the SDK's own signer, which keeps nothing, for the same signed headers. */
export async function authorizationBySdk(
  { headers, path, body }: SignedRequest,
  region: string,
  credentials: Caller,
): Promise<string | undefined> {
  const time = String(headers["x-amz-date"]).replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5");
  const [, names = ""] = /SignedHeaders=([^,]+)/.exec(String(headers.authorization)) ?? [];
  // The signer adds these by itself.
  const given = names.split(";").filter((name) => !/^x-amz-(date|security-token)$/.test(name));
  const signer = new SignatureV4({
    ...{ service: "dynamodb", region, credentials, sha256: Sha256, applyChecksum: false },
  });
  const signed = await signer.sign(
    {
      ...{ method: "POST", protocol: "https:", hostname: "x", path, query: {}, body },
      headers: Object.fromEntries(given.map((name) => [name, String(headers[name])])),
    },
    { signingDate: new Date(time) },
  );
  return signed.headers.authorization;
}
