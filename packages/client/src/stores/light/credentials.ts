import { type Clock, settles, sleep } from "../../base/clock.ts";
import { saying } from "../../base/errors.ts";
import { isMistake } from "../../base/operational.ts";
import { LeaseConfigurationError } from "../sdk/errors.ts";
import { exchange, httpModule } from "./exchange.ts";
import type { Signer } from "./signing.ts";

/** Credentials, as the SDK's own providers give them. */
export interface LightCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** When they end. @default - never */
  readonly expiration?: Date | undefined;
}

/** This long before their end new ones are fetched, while the present ones still sign requests. */
const aheadMs = 5 * 60_000;
/** The longest fetch. Then it is given up, and the next call begins another. */
const longestFetchMs = 5_000;
/** The pause after a failed fetch while the present credentials are valid. */
const againMs = 15_000;

/**
 * The credentials of one store. All calls that need new ones at the same time share one fetch. While a fetch fails,
 * valid ones stay in use. A hanging fetch is given up after 5 s.
 */
export class CredentialsCache {
  readonly #load: () => Promise<LightCredentials>;
  readonly #now: () => number;
  readonly #clock: Clock;
  #current: LightCredentials | undefined;
  #loading: Promise<LightCredentials> | undefined;
  #notBefore = Number.NEGATIVE_INFINITY;

  /** `now` returns the time to compare with the credentials' end. */
  constructor(load: () => Promise<LightCredentials>, now: () => number, clock: Clock) {
    this.#load = load;
    this.#now = now;
    this.#clock = clock;
  }

  /** Returns credentials that are valid now, without a wait if it has them. Rejects with LeaseConfigurationError. */
  get(): Signer | Promise<Signer> {
    const { expiration } = this.#current ?? {};
    const leftMs = expiration === undefined ? Number.POSITIVE_INFINITY : expiration.getTime() - this.#now();
    if (this.#current === undefined || leftMs <= 0) return this.#renew();
    if (leftMs < aheadMs && this.#now() >= this.#notBefore) {
      this.#notBefore = this.#now() + againMs;
      // Ignored: the present ones are valid, and the next call tries again.
      this.#renew().catch(() => undefined);
    }
    return this.#current;
  }

  /** The service has refused these credentials: makes `get` return others. Returns whether there are any. */
  async replace(refused: Signer): Promise<boolean> {
    const other = this.#current === refused ? await this.#renew() : this.#current;
    return other?.accessKeyId !== refused.accessKeyId || other.sessionToken !== refused.sessionToken;
  }

  #renew(): Promise<LightCredentials> {
    this.#loading ??= this.#fetch().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #fetch(): Promise<LightCredentials> {
    try {
      const loading = this.#load();
      if (!(await settles(this.#clock, loading, longestFetchMs)))
        throw missing(`they did not come within ${longestFetchMs} ms`);
      this.#current = checkedCredentials(await loading);
      return this.#current;
    } catch (error) {
      if (error instanceof LeaseConfigurationError || isMistake(error)) throw error;
      throw missing(`they could not be fetched (${saying(error)})`, error);
    }
  }
}

function checkedCredentials(given: LightCredentials): LightCredentials {
  const { accessKeyId, secretAccessKey, sessionToken = "-", expiration = new Date(0) } = given ?? {};
  const areTexts = [accessKeyId, secretAccessKey, sessionToken].every((text) => isPrintable.test(text ?? ""));
  if (areTexts && Number.isFinite(expiration?.getTime?.())) return given;
  throw missing(
    "accessKeyId and secretAccessKey are needed, without a line break at the end, and expiration as a Date",
  );
}

function missing(finding: string, cause?: unknown): LeaseConfigurationError {
  const text =
    `no AWS credentials for the light store: ${finding}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass ` +
    "credentials; the SDK's store reads profiles, SSO, web identity and EC2's metadata: " +
    'new LeaseClient({ tableName }) of "@leasehold/client"';
  return new LeaseConfigurationError("LEASE_CREDENTIALS_MISSING", text, { cause });
}

/** The characters of a header, without spaces at its ends. A file's text often ends with a line break. */
const isPrintable = /^[!-~]([ -~]*[!-~])?$/;

/** Variables of the environment that only the SDK reads. */
const onlyForSdk = ["AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];

/** Reads credentials from the environment's variables, or from the container endpoint (ECS, EKS) that they name. */
export async function environmentCredentials(
  env: NodeJS.ProcessEnv,
  clock: Clock,
): Promise<LightCredentials> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (accessKeyId && secretAccessKey) {
    return { accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN || undefined };
  }
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_CREDENTIALS_FULL_URI: uri } = env;
  if (path || uri)
    return await containerCredentials(path ? `http://169.254.170.2${path}` : (uri ?? ""), env, clock);
  const set = onlyForSdk.filter((name) => env[name]);
  throw missing(set.length > 0 ? `it does not read ${set.join(" and ")}` : "the environment has none");
}

const credentialAttempts = 3;
const credentialAttemptMs = 1_000;
/** Hosts that may be asked without TLS: this machine itself, and the agents of ECS and EKS. */
const localHosts = /^(localhost|127\.[\d.]+|\[::1\]|169\.254\.170\.(2|23)|\[fd00:ec2::23\])$/;

async function containerCredentials(
  address: string,
  env: NodeJS.ProcessEnv,
  clock: Clock,
): Promise<LightCredentials> {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "https:" && !(url?.protocol === "http:" && localHosts.test(url.hostname))) {
    throw missing(`${JSON.stringify(address)} is neither HTTPS nor a container's host`);
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await askContainer(url, await authorization(env));
    } catch (error) {
      if (attempt === credentialAttempts) throw error;
      await sleep(clock, attempt * 100);
    }
  }
}

/** Read for each fetch: the token in the file changes. */
async function authorization(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const file = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE;
  if (!file) return env.AWS_CONTAINER_AUTHORIZATION_TOKEN?.trim();
  const { readFile } = await import("node:fs/promises");
  return (await readFile(file, "utf8")).trim();
}

async function askContainer(url: URL, token: string | undefined): Promise<LightCredentials> {
  const { protocol, hostname, port, pathname, search } = url;
  const options = {
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port,
    path: pathname + search,
    headers: token ? { Authorization: token } : {},
    timeout: credentialAttemptMs,
  };
  const { request } = await httpModule(protocol);
  const { status, body } = await exchange(request, options, "");
  if (status !== 200) throw new Error(`${url.host} answered ${status}`);
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = parsedAnswer(body);
  return {
    accessKeyId: AccessKeyId as string,
    secretAccessKey: SecretAccessKey as string,
    sessionToken: Token,
    expiration: Expiration === undefined ? undefined : new Date(Expiration),
  };
}

function parsedAnswer(body: string): Readonly<Record<string, string | undefined>> {
  try {
    return JSON.parse(body) ?? {};
  } catch {
    // Ignored: the parser's message could show a part of a secret.
    throw new Error("the answer is no JSON");
  }
}
