// From flags and variables to a client on a table. The AWS SDK is loaded only if its credentials are needed: profiles,
// SSO or instance roles. It takes several times as long to load as everything else.

import type { Clock, LeaseClient, LeaseStore } from "@leasehold/client";
import { LeaseClient as LightClient, lightStore } from "@leasehold/client/light";
import type { GlobalValues } from "./flags.ts";
import { RequestLog, watched } from "./request-log.ts";

/** A client on a table, and the known facts about its place. */
export interface Connection {
  readonly client: LeaseClient;
  /** The table itself, for requests that no method of the client sends. These are counted too. */
  readonly store: LeaseStore;
  readonly tableName: string;
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  /** For people: `table leases · eu-central-1`. */
  readonly place: string;
  /** The size of the table, which DynamoDB counts now and then; undefined for a table in memory. Loads the SDK. */
  describeTable(): Promise<TableSize | undefined>;
  /** The requests so far. */
  readonly requests: RequestLog;
  /** Does not release held leases at the close: then they belong to a handle, and not to this process. */
  keepLeases(): void;
  /** Releases the held leases. */
  close(): Promise<void>;
}

/** Makes the store of a table: on DynamoDB, or in memory in tests. */
export type OpenStore = (place: TablePlace) => Promise<LeaseStore>;

/** The size of a table. */
export interface TableSize {
  readonly items: number;
  readonly bytes: number;
}

/** The place of a table, and the access to it. */
export interface TablePlace {
  readonly tableName: string;
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  readonly profile: string | undefined;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
}

const loopbackHost = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/;

/** Engines on this machine take any credentials, and keep the data of each access key and region apart. */
export const localCredentials = { accessKeyId: "local", secretAccessKey: "local" } as const;
export const localRegion = "us-east-1";

/**
 * The place of the table, by the flags and the environment. Without a table name, it is the table with the tag
 * leasehold=true. Rejects with a CommandError (78) if there is none, or more than one.
 */
export async function placeOf(
  global: GlobalValues,
  env: NodeJS.ProcessEnv,
  clock: Clock,
): Promise<TablePlace> {
  const place = placeOfTable(global.table, global, env);
  const tableName = global.table ?? (await (await import("./table/find-table.ts")).findTable(place));
  return { ...place, tableName, clock };
}

function placeOfTable(
  table: string | undefined,
  global: GlobalValues,
  env: NodeJS.ProcessEnv,
): Omit<TablePlace, "tableName" | "clock"> {
  const { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, DYNAMODB_ENDPOINT } = env;
  const given = global.endpoint ?? AWS_ENDPOINT_URL_DYNAMODB ?? AWS_ENDPOINT_URL ?? DYNAMODB_ENDPOINT;
  const endpoint = given === "aws" || given === "" ? undefined : given;
  const profile = global.profile ?? (env.AWS_PROFILE || undefined);
  const regionOfTable = /^arn:[^:]+:dynamodb:([^:]+):/.exec(table ?? "")?.[1];
  const region =
    global.region ??
    regionOfTable ??
    (env.AWS_REGION || env.AWS_DEFAULT_REGION || undefined) ??
    (isLoopback(endpoint) && profile === undefined ? localRegion : undefined);
  return { region, endpoint, profile, env };
}

/** How the user calls this program: with npx there may be no `leasehold` on the PATH. */
export function ownCommand({ npm_command: npmCommand }: NodeJS.ProcessEnv): string {
  return npmCommand === "exec" ? "npx @leasehold/cli" : "leasehold";
}

/** Whether an endpoint is on this machine: then it is a local engine. */
export function isLoopback(endpoint: string | undefined): boolean {
  return endpoint !== undefined && URL.canParse(endpoint) && isLoopbackHost(new URL(endpoint).hostname);
}

/** Whether a host's name or address always means this machine. */
export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host);
}

/** The light store; its credentials come from the environment, or else from the SDK. */
export async function openStore(place: TablePlace): Promise<LeaseStore> {
  const { tableName, region, endpoint, profile, env, clock } = place;
  const hasKeys = Boolean(env.AWS_ACCESS_KEY_ID);
  const isContainer = Boolean(
    env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI ?? env.AWS_CONTAINER_CREDENTIALS_FULL_URI,
  );
  const isLocal = isLoopback(endpoint) && !hasKeys;
  if (profile === undefined && region !== undefined && (hasKeys || isContainer || isLocal)) {
    return lightStore({
      tableName,
      region,
      clock,
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(isLocal ? { credentials: localCredentials } : {}),
    });
  }
  const { storeByProfile } = await import("./sdk.ts");
  return await storeByProfile(place);
}

/** Connects a client. */
export async function connect(
  global: GlobalValues,
  {
    env,
    clock,
    open,
    by,
    printDryRun,
  }: {
    readonly env: NodeJS.ProcessEnv;
    readonly clock: Clock;
    readonly open: OpenStore;
    readonly by: string;
    /** Prints a write instead of sending it; undefined without --dry-run. */
    readonly printDryRun: ((request: object) => void) | undefined;
  },
): Promise<Connection> {
  const place = await placeOf(global, env, clock);
  const requests = new RequestLog();
  const closing = new AbortController();
  const limits = { timeoutMs: global.timeout, closed: closing.signal };
  const store = watched(await open(place), requests, { ...limits, printDryRun });
  const client = new LightClient({
    store,
    owner: by,
    clock,
    ...(global.skew === undefined ? {} : { clockSkewMs: global.skew }),
  });
  const { tableName, region, endpoint } = place;
  let keepsLeases = false;
  return {
    client,
    store,
    tableName,
    region,
    endpoint,
    place: `table ${tableName} · ${isLoopback(endpoint) ? endpoint : (region ?? "?")}`,
    describeTable: async () => {
      if (store.isLocal) return undefined;
      const { sizeOf } = await import("./sdk.ts");
      return await sizeOf(place);
    },
    requests,
    keepLeases: () => {
      keepsLeases = true;
    },
    close: async () => {
      if (!keepsLeases) await client.close({ timeoutMs: 5_000 });
      closing.abort();
    },
  };
}
