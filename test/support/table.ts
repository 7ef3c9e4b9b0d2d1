import { DynamoDBClient, type DynamoDBClientConfig, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import {
  type Clock,
  createLeaseTable,
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseStore,
} from "@leasehold/client";
import {
  LeaseClient as LightClient,
  type LightCredentials,
  type LightStore,
  type LightStoreOptions,
  lightStore,
} from "@leasehold/client/light";
import type { Target } from "./proxy.ts";

/** A lease table that nobody else uses, and clients for it. */
export interface TestTable {
  readonly tableName: string;
  /** Goes to the engine directly. */
  readonly dynamodb: DynamoDBClient;
  /** A lease client that goes to the engine directly, unless the options say otherwise. */
  client(options?: LeaseClientOptions): LeaseClient;
  /** A lease that nobody has released and that ended a minute ago. */
  deadLease(key: string, leaseDurationMs?: number): Promise<Lease>;
  /**
   * Leases of these keys with heartbeats of one client that are due at the same moment, for the client takes them on
   * in one turn.
   */
  leasesDueTogether(
    beater: LeaseClient,
    keys: readonly string[],
    heartbeat: number,
    leaseDurationMs?: number,
  ): Promise<Lease[]>;
  /** A key that no other test uses. */
  newKey(): string;
  close(): void;
}

/** Makes a lease table with a name of its own. */
export async function makeTable(engine: Target): Promise<TestTable> {
  const tableName = `leases-${crypto.randomUUID()}`;
  const dynamodb = sdkClient(engine);
  await createLeaseTable({ tableName, dynamodb });
  let keys = 0;
  return {
    tableName,
    dynamodb,
    client: (options = {}) => leaseClient({ tableName, dynamodb, ...options }),
    deadLease: async (key, leaseDurationMs = 30_000) => {
      const client = leaseClient({ tableName, dynamodb, leaseDurationMs });
      const lease = await client.acquire(key, { owner: "the dead holder" });
      await dynamodb.send(
        new UpdateItemCommand({
          TableName: tableName,
          Key: { pk: { S: key }, sk: { S: "lease" } },
          UpdateExpression: "SET expiresAt = :past",
          ExpressionAttributeValues: { ":past": { N: String(Date.now() - 60_000) } },
        }),
      );
      return lease;
    },
    leasesDueTogether: async (beater, keys, heartbeat, leaseDurationMs = 30_000) => {
      const acquirer = leaseClient({ tableName, dynamodb, leaseDurationMs });
      const handles = await Promise.all(keys.map(async (key) => (await acquirer.acquire(key)).toJSON()));
      return handles.map((handle) => beater.adopt(handle, { heartbeat }));
    },
    newKey: () => `lock-${++keys}`,
    close: () => dynamodb.destroy(),
  };
}

/** An SDK client for an engine or for a proxy in front of one. */
export function sdkClient(target: Target, config: DynamoDBClientConfig = {}): DynamoDBClient {
  const client = new DynamoDBClient({ ...target.clientConfig, ...config });
  origins.set(client, { target, config });
  return client;
}

/** The settings of an engine or a proxy, as the light store takes them. */
function lightConfig({
  clientConfig,
}: Target): Pick<LightStoreOptions, "endpoint" | "region" | "credentials"> {
  const { endpoint, region, credentials } = clientConfig as Required<LightStoreOptions>;
  return { endpoint, region, credentials };
}

/** A light store on an engine or a proxy. */
export function lightStoreOn(target: Target, options: LightStoreOptions): LightStore {
  return lightStore({ ...lightConfig(target), ...options });
}

/** The environment's variables for clients of an engine or a proxy that nobody gives settings. */
export function environmentOf({ clientConfig }: Target): Readonly<Record<string, string>> {
  const { endpoint, region, credentials } = lightConfig({ clientConfig });
  const { accessKeyId, secretAccessKey } = credentials as LightCredentials;
  return {
    AWS_ENDPOINT_URL_DYNAMODB: String(endpoint),
    AWS_REGION: String(region),
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  };
}

/** What the SDK clients of these tests were made for. */
const origins = new WeakMap<object, { readonly target: Target; readonly config: DynamoDBClientConfig }>();

/** Whether the tests run on the light store: vitest's project "light" runs some of them again so. */
export const isLight: boolean = process.env.LEASEHOLD_TEST_STORE === "light";

/** The client that is used where the user brings neither a store nor an SDK client. */
export const DefaultClient = isLight ? LightClient : LeaseClient;

/**
 * A lease client on an SDK client of {@link sdkClient}; where the tests run on the light store, on one in its place that goes
 * to the same engine or proxy and makes as many attempts.
 */
export function leaseClient(options: LeaseClientOptions): LeaseClient {
  const { tableName = "", dynamodb, ...others } = options;
  const origin = dynamodb && origins.get(dynamodb);
  if (!isLight || origin === undefined) return new LeaseClient(options);
  return new LeaseClient({ ...others, store: lightStoreFor(tableName, origin, others.clock) });
}

/** A light store in the place of an SDK client of {@link sdkClient}. */
export function lightInPlaceOf(dynamodb: DynamoDBClient, tableName: string): LeaseStore {
  const origin = origins.get(dynamodb);
  if (origin === undefined)
    throw new Error("only an SDK client of these tests has a light store in its place");
  return lightStoreFor(tableName, origin, undefined);
}

function lightStoreFor(
  tableName: string,
  { target, config }: { readonly target: Target; readonly config: DynamoDBClientConfig },
  clock: Clock | undefined,
): LeaseStore {
  const { maxAttempts } = config;
  return lightStoreOn(target, {
    tableName,
    ...(clock && { clock }),
    ...(typeof maxAttempts === "number" && { maxAttempts }),
  });
}

/** How a clock differs from the machine's own. */
export interface Bend {
  /** Added to the wall clock. */
  readonly wallMs?: number;
  /** Gives what is added to the monotonic clock. */
  readonly monotonicMs?: () => number;
}

/** The machine's clocks and timers, bent. */
export function bentClock({ wallMs = 0, monotonicMs = () => 0 }: Bend): Clock {
  return {
    now: () => Date.now() + wallMs,
    monotonic: () => performance.now() + monotonicMs(),
    schedule: (callback, delayMs, options) => {
      const timer = setTimeout(callback, delayMs);
      if (options?.background) timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
