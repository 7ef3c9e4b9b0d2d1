// From flags and variables to a client on a table, whose requests are counted for --verbose, limited by --timeout, and
// printed instead of sent with --dry-run. The AWS SDK is loaded only if its credentials are needed: profiles, SSO or
// instance roles. It takes several times as long to load as everything else.

import type { Clock, Item, LeaseClient, LeaseStore } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { longestTimerMs, onAbort, settles } from "@leasehold/client/internal";
import { LeaseClient as LightClient, lightStore } from "@leasehold/client/light";
import { defined, type GlobalValues } from "./flags.ts";
import { isLoopback, localCredentials, localRegion, type TablePlace, type TableSize } from "./table/place.ts";
import { counted } from "./terminal/text.ts";
import { bytesOf, readCost, unitsText } from "./view/read-cost.ts";

/** A client on a table, and the known facts about its place. */
export interface Connection extends TablePlace {
  readonly client: LeaseClient;
  /** Acts on the leases of others in the user's name. */
  readonly operator: LeaseOperator;
  /** The table itself, for requests that no method of the client sends. These are counted too. */
  readonly store: LeaseStore;
  /** For people: `table leases · eu-central-1`. */
  readonly place: string;
  /** The size of the table, which DynamoDB counts now and then; undefined for a table in memory. Loads the SDK. */
  describeTable(): Promise<TableSize | undefined>;
  readonly requests: RequestLog;
  /** Does not release held leases at the close: then they belong to a handle, and not to this process. */
  keepLeases(): void;
  close(): Promise<void>;
}

/** Makes the store of a table: on DynamoDB, or in memory in tests. */
export type OpenStore = (place: TablePlace) => Promise<LeaseStore>;

/**
 * The place of the table, by the flags and the environment. Without a table name, it is the table with the tag
 * leasehold=true. Rejects with a CommandError (78) if there is none, or more than one.
 */
export async function placeOf(
  global: GlobalValues,
  { env, clock, signal }: { env: NodeJS.ProcessEnv; clock: Clock; signal: AbortSignal },
): Promise<TablePlace> {
  const { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, DYNAMODB_ENDPOINT } = env;
  const given = global.endpoint || AWS_ENDPOINT_URL_DYNAMODB || AWS_ENDPOINT_URL || DYNAMODB_ENDPOINT;
  const endpoint = given === "aws" || given === "" ? undefined : given;
  const profile = global.profile ?? (env.AWS_PROFILE || undefined);
  const regionOfTable = /^arn:[^:]+:dynamodb:([^:]+):/.exec(global.table ?? "")?.[1];
  const region =
    global.region ??
    regionOfTable ??
    (env.AWS_REGION || env.AWS_DEFAULT_REGION || undefined) ??
    (isLoopback(endpoint) && profile === undefined ? localRegion : undefined);
  const place = { region, endpoint, profile, env };
  const tableName = global.table ?? (await (await import("./sdk.ts")).findTable(place, signal));
  return { ...place, tableName, clock };
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
    const credentials = isLocal ? localCredentials : undefined;
    return lightStore({ tableName, region, clock, ...defined({ endpoint, credentials }) });
  }
  const { storeByProfile } = await import("./sdk.ts");
  return await storeByProfile(place);
}

/** A promise's result; rejects with the signal's reason as soon as it aborts, also while a request hangs. */
export async function unlessInterrupted<T>(
  promise: Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  await settles(clock, promise, Number.POSITIVE_INFINITY, signal);
  return await promise;
}

/** What a connection needs beside its flags. */
interface Terms {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly open: OpenStore;
  readonly by: string;
  /** Prints a write instead of sending it; undefined without --dry-run. */
  readonly printDryRun: ((request: object) => void) | undefined;
}

export async function connect(global: GlobalValues, terms: Terms): Promise<Connection> {
  const { clock, open, by } = terms;
  const place = await placeOf(global, terms);
  const requests = new RequestLog();
  const closing = new AbortController();
  const limits = { timeoutMs: global.timeout, closed: closing.signal };
  const store = watched(await open(place), requests, { ...limits, ...terms });
  const client = new LightClient({ store, owner: by, clock, ...defined({ clockSkewMs: global.skew }) });
  const { tableName, region, endpoint } = place;
  let keepsLeases = false;
  return {
    ...place,
    client,
    get operator() {
      return new LeaseOperator(client, { by });
    },
    store,
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

/** Ends a command at its first write with --dry-run. */
export class DryRunEnd extends Error {
  override readonly name = "DryRunEnd";
}

type Operation = "update" | "updateMany" | "transact" | "get" | "query" | "scan";

/** Counts requests, and the cost of reads. */
class RequestLog {
  readonly #counts = new Map<Operation, number>();
  #readUnits = 0;

  note(operation: Operation): void {
    this.#counts.set(operation, (this.#counts.get(operation) ?? 0) + 1);
  }

  /** Notes the result of a read: DynamoDB bills twice as much for a consistent one. */
  noteRead(operation: Operation, items: readonly Item[], isConsistent: boolean): void {
    this.note(operation);
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    this.#readUnits += readCost(items.length, bytes).units * (isConsistent ? 2 : 1);
  }

  /** `3 requests: 2 query, 1 update; about 1.5 RCU`. */
  toString(): string {
    const parts = [...this.#counts].map(([operation, count]) => `${count} ${operation}`);
    const listed = parts.length > 0 ? `: ${parts.join(", ")}` : "";
    const units = this.#readUnits > 0 ? `; about ${unitsText(this.#readUnits)} RCU` : "";
    const total = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    return `${counted(total, "request")}${listed}${units}`;
  }
}

/** The same store, with a log of its requests. Until the first write, the signal ends each read at once. */
function watched(
  store: LeaseStore,
  log: RequestLog,
  limits: Pick<Terms, "clock" | "signal" | "printDryRun"> & {
    readonly timeoutMs: number | undefined;
    /** Ends the requests that are still under way: otherwise the process would wait for them. */
    readonly closed: AbortSignal;
  },
): LeaseStore {
  const { timeoutMs, closed, printDryRun } = limits;
  let isOver = false;
  let hasWritten = false;
  // No AbortSignal.any: the closing signal would keep every request's listener.
  const within = async <O extends { readonly signal: AbortSignal }, T>(
    options: O,
    send: (limited: O) => Promise<T>,
  ): Promise<T> => {
    const over = new AbortController();
    const signals = [
      options.signal,
      closed,
      ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(Math.min(timeoutMs, longestTimerMs))]),
    ];
    const ignored = signals.map((signal) => onAbort(signal, (reason) => over.abort(reason)));
    try {
      return await send({ ...options, signal: over.signal });
    } finally {
      for (const ignore of ignored) ignore();
    }
  };
  const writing =
    <Q extends object, O extends { readonly signal: AbortSignal }, T>(
      operation: Operation,
      send: (request: Q, options: O) => Promise<T>,
    ) =>
    async (request: Q, options: O): Promise<T> => {
      if (printDryRun !== undefined) {
        if (!isOver) printDryRun({ operation, tableName: store.tableName, request });
        isOver = true;
        throw new DryRunEnd("nothing was sent");
      }
      hasWritten = true;
      log.note(operation);
      return await within(options, (limited) => send(request, limited));
    };
  const reading =
    <Q extends object, O extends { readonly signal: AbortSignal }, T>(
      operation: Operation,
      send: (request: Q, options: O) => Promise<T>,
      itemsOf: (answer: T) => readonly Item[],
    ) =>
    async (request: Q, options: O): Promise<T> => {
      const answer = within(options, (limited) => send(request, limited));
      const seen = await (hasWritten ? answer : unlessInterrupted(answer, limits));
      log.noteRead(operation, itemsOf(seen), "consistent" in request && request.consistent === true);
      return seen;
    };
  return {
    tableName: store.tableName,
    ...defined({ isLocal: store.isLocal }),
    update: writing("update", (...call) => store.update(...call)),
    updateMany: writing("updateMany", (...call) => store.updateMany(...call)),
    transact: writing("transact", (...call) => store.transact(...call)),
    get: reading(
      "get",
      (...call) => store.get(...call),
      (item) => (item === undefined ? [] : [item]),
    ),
    query: reading(
      "query",
      (...call) => store.query(...call),
      ({ items }) => items,
    ),
    // The items that the filter has left out are billed too, and are not known here.
    scan: reading(
      "scan",
      (...call) => store.scan(...call),
      ({ items }) => items,
    ),
  };
}
