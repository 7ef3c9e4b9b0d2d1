import { tableRules } from "../../base/check-options.ts";
import { check, checkOptions, countTo, type Rules, rule } from "../../base/check-values.ts";
import { type Clock, type Randomness, systemClock, systemRandomness } from "../../base/clock.ts";
import { InvalidOptionsError } from "../../base/errors.ts";
import type { LeaseStore } from "../../base/store.ts";
import { TableStore } from "../sdk/table-store.ts";
import { CredentialsCache, environmentCredentials, type LightCredentials } from "./credentials.ts";
import { endpointUrl, isRegion, regionIn, resolveEndpoint, withoutUser } from "./endpoint.ts";
import { HttpTransport } from "./http-transport.ts";
import { SigningTime } from "./signing.ts";

/** Options of {@link lightStore}. */
export interface LightStoreOptions {
  /** The lease table's name or ARN. */
  readonly tableName: string;
  /** @default - that of the table's ARN, else of the variables AWS_REGION or AWS_DEFAULT_REGION */
  readonly region?: string;
  /**
   * DynamoDB's URL.
   * @default - that of the variables AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL, else the region's own, with
   * AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT
   */
  readonly endpoint?: string;
  /**
   * Credentials, or a function that fetches them, as the SDK's credential providers do. It is called again shortly
   * before the `expiration` of the last ones, and when the service says that they have expired. A fetch that takes
   * longer than 5 s is given up, and the next request calls it again.
   * @default - of the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else of the endpoint that
   * ECS and EKS give a container
   */
  readonly credentials?: LightCredentials | (() => Promise<LightCredentials>);
  /** Certificates to trust in place of Node's own, in PEM. @default - Node's own */
  readonly ca?: string | Buffer;
  /** The most attempts of one request, from 1 to 10, when answers are lost or refusals are temporary. @default 4 */
  readonly maxAttempts?: number;
  /** @default - the machine's own */
  readonly clock?: Clock;
  /** Jitter. @default - the platform's random source */
  readonly randomness?: Randomness;
}

/** A {@link LeaseStore} on DynamoDB without the AWS SDK. */
export interface LightStore extends LeaseStore {
  /** Closes its connections. Not needed: a process does not wait for idle ones. */
  destroy(): void;
}

/**
 * DynamoDB without the AWS SDK: the `store` of a {@link LeaseClient} for functions that have to start fast.
 *
 * It signs and sends requests itself, over HTTPS connections that it keeps alive, and repeats them within the caller's
 * time, as the SDK does. It does not support profiles, SSO, web identity, EC2 instance metadata or proxies: for those
 * use the SDK's store. Until the first call it does not read the environment and sends nothing.
 *
 * Throws InvalidOptionsError. The client's calls reject with LeaseConfigurationError if there is no region, or if there
 * are no credentials.
 *
 * ```ts
 * import { LeaseClient, lightStore } from "@leasehold/client/light";
 *
 * const client = new LeaseClient({ store: lightStore({ tableName: "leases" }) });
 * ```
 */
export function lightStore(options: LightStoreOptions): LightStore {
  const given = checkOptions(options, lightStoreRules, "options", ["tableName"]);
  const { tableName, region, endpoint, credentials, maxAttempts = 4 } = given;
  const { clock = systemClock, randomness = systemRandomness } = given;
  const ownRegion = regionIn(tableName);
  const isThere = region === undefined || ownRegion === undefined || region === ownRegion;
  check(isThere, "region", region, `the region of tableName, which is ${ownRegion}`);

  const time = new SigningTime(clock);
  const load = async (): Promise<LightCredentials> =>
    typeof credentials === "function"
      ? await credentials()
      : (credentials ?? (await environmentCredentials(process.env, clock)));
  const transport = new HttpTransport({
    endpoint: () => resolveEndpoint({ tableName, region, endpoint }, process.env),
    credentials: new CredentialsCache(load, time.now, clock),
    time,
    ca: given.ca,
    maxAttempts,
    clock,
    randomness,
  });
  return Object.assign(new TableStore(tableName, transport, clock), { destroy: () => transport.destroy() });
}

const lightStoreRules: Rules<LightStoreOptions> = {
  tableName: tableRules.tableName,
  region: rule("the name of an AWS region", isRegion),
  endpoint: (option, value) => {
    const shown = typeof value === "string" ? withoutUser(value) : value;
    check(endpointUrl(value) !== undefined, option, shown, "a URL with http: or https:, without a user");
    return value as string;
  },
  credentials: (option, value) => {
    const { accessKeyId, secretAccessKey } = (value ?? {}) as Partial<LightCredentials>;
    if (typeof value === "function" || (accessKeyId && secretAccessKey)) return value as LightCredentials;
    const allowed = "an object with accessKeyId and secretAccessKey, or a function that gives one";
    // The message shows no part of them.
    throw new InvalidOptionsError(option, undefined, allowed, { finding: "are incomplete" });
  },
  ca: rule("certificates in PEM", (value) => typeof value === "string" || Buffer.isBuffer(value)),
  maxAttempts: countTo(10),
  clock: tableRules.clock,
  randomness: tableRules.randomness,
};
