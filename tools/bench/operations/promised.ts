/** What docs/requests.md promises of one operation, and how the operation is performed to be counted. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { type Consumption, LostReplyError, Meter } from "./metered.ts";

/** A table, and clients for it. */
interface OperationTable {
  readonly tableName: string;
  readonly dynamodb: DynamoDBClient;
  /** A client on that SDK client, unless the options say otherwise. */
  client(options?: LeaseClientOptions): LeaseClient;
  /** A key that nothing has used. */
  newKey(): string;
}

/** Where operations are performed. */
export class OperationSite {
  /** A client, and so a process, of its own; each call of `counted` sees what all of them sent. */
  readonly client: (options?: LeaseClientOptions) => LeaseClient;
  /** A key that nothing has used. */
  readonly newKey: () => string;
  readonly #table: OperationTable;
  readonly #meter: Meter;
  #seen: Consumption | undefined;

  constructor(table: OperationTable) {
    this.client = (options) => table.client(options);
    this.newKey = () => table.newKey();
    this.#table = table;
    this.#meter = new Meter(table.dynamodb);
  }

  /** A process whose clock stands still, `agoMs` ago. @default 0 */
  readonly stopped = (agoMs = 0): StoppedProcess =>
    new StoppedProcess(this.#table.tableName, this.#table.dynamodb, agoMs);

  /** Performs the operation itself; what goes before it does not count. */
  async counted(perform: Counted): Promise<unknown> {
    this.#meter.take();
    const result = await perform();
    this.#seen = this.#meter.take();
    return result;
  }

  /** Gives what an operation sends. */
  async measure(operation: DocumentedOperation): Promise<Consumption> {
    this.#seen = undefined;
    await operation.perform(this);
    if (this.#seen === undefined) throw new Error("nothing was counted");
    return this.#seen;
  }
}

/** Options of a client whose chances are all the same, so that its requests can be counted. */
export const steady: LeaseClientOptions = {
  randomness: { token: () => crypto.randomUUID(), fraction: () => 0.5 },
};

interface Answered {
  readonly response?: { readonly headers?: Record<string, string | undefined> };
}

/**
 * A process whosetime passes only when the caller moves it, and never while a request is under way.
 *
 * Answers tell it its own time, so its clock may be an hour behind: then its leases are those of a dead holder. So what its clients send while they wait can be counted, and takes no real time.
 */
export class StoppedProcess extends ManualClock {
  readonly #tableName: string;
  readonly #dynamodb: DynamoDBClient;
  readonly #underWay = new Set<Promise<unknown>>();
  #losesReply = false;

  constructor(tableName: string, dynamodb: DynamoDBClient, agoMs: number) {
    super(Date.now() - agoMs);
    this.#tableName = tableName;
    this.#dynamodb = dynamodb;
  }

  /** A lease client of this process. */
  client(options: LeaseClientOptions = {}): LeaseClient {
    const dynamodb: DynamoDBClient = Object.create(this.#dynamodb, {
      send: { value: (...call: Parameters<DynamoDBClient["send"]>) => this.#send(...call) },
    });
    return new LeaseClient({ tableName: this.#tableName, dynamodb, clock: this, ...steady, ...options });
  }

  /** The reply to the next request that succeeds gets lost on its way. */
  loseReply(): void {
    this.#losesReply = true;
  }

  /** Lets all that is under way settle, without letting time pass. */
  override async settle(): Promise<void> {
    await super.settle();
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay);
      await super.settle();
    }
  }

  async #send(command: Parameters<DynamoDBClient["send"]>[0], ...rest: unknown[]): Promise<unknown> {
    command.middlewareStack.add(
      (next) => async (args) => {
        const answer = await next(args);
        const { headers } = (answer as Answered).response ?? {};
        if (headers !== undefined) headers.date = new Date(this.now()).toUTCString();
        return answer;
      },
      { step: "deserialize", priority: "low", name: "ownTime" },
    );
    command.middlewareStack.add(
      (next) => async (args) => {
        const answer = await next(args);
        if (!this.#losesReply) return answer;
        this.#losesReply = false;
        throw new LostReplyError("the reply was lost");
      },
      { step: "deserialize", priority: "high", name: "lostReply" },
    );
    const sent = (this.#dynamodb.send as (...call: unknown[]) => Promise<unknown>)(command, ...rest);
    this.#underWay.add(sent);
    try {
      return await sent;
    } finally {
      this.#underWay.delete(sent);
    }
  }
}

/** What is counted. */
type Counted = () => Promise<unknown>;

/** An operation whose requests docs/requests.md promises. */
export interface DocumentedOperation {
  readonly name: string;
  /** What it belongs to. */
  readonly of: string;
  /** The page of that, below the repository's root. */
  readonly page: string;
  /** As `listedRequests` writes them. */
  readonly requests: string;
  /** Of items up to 1 KB; undefined where an item is larger, and is billed for its size. */
  readonly writeUnits: number | undefined;
  readonly readUnits: number | undefined;
  /** Whether it writes under a key that is not one of `newKey`: the registry's. @default false */
  readonly writesElsewhere?: true;
  perform(site: OperationSite): Promise<unknown>;
}

/** Operations stand in groups, one for each page. */
export type Promised = Omit<DocumentedOperation, "of" | "page">;

type Arrange = (site: OperationSite, key: string) => Counted | Promise<Counted>;
type Units = readonly [write?: number, read?: number];

/**
 * An operation: `arrange` makes what it needs with a new key, and gives what is counted. Leases that it leaves have no
 * heartbeat. Units are given where they are not one for each update, and for each read.
 */
export function promised(name: string, requests: string, ...how: [Arrange] | [Units, Arrange]): Promised {
  const [[writeUnits, readUnits], arrange] = how.length === 2 ? how : [usualUnits(requests), ...how];
  const perform: Promised["perform"] = async (site) => site.counted(await arrange(site, site.newKey()));
  return { name, requests, writeUnits, readUnits, perform };
}

/** Of updates and consistent reads of items up to 1 KB. */
function usualUnits(requests: string): Units {
  const count = (operation: string): number =>
    Number(new RegExp(`(\\d+) ${operation}`).exec(requests)?.[1] ?? 0);
  return [count("UpdateItem"), count("GetItem")];
}

export const hourMs = 3_600_000;

/** A client of a process that died an hour ago: its leases have ended, and were not released. */
export function deadClient({ stopped }: OperationSite, options?: LeaseClientOptions): LeaseClient {
  return stopped(hourMs).client(options);
}

/** Options of a holder that keeps its lease through every wait that is counted. */
export const held = { leaseDurationMs: 3 * hourMs } as const;

/** The same owner, once more. */
export const again = { owner: "worker", reentrant: true } as const;

/** A call while time passes in its process, whatever becomes of the call; and then what it leaves in the background. */
export function during(
  process: StoppedProcess,
  ms: number,
  call: () => Promise<unknown> = async () => undefined,
): Counted {
  return async () => {
    const ended = call().then(
      () => undefined,
      () => undefined,
    );
    await process.advance(ms);
    await ended;
    await process.settle();
  };
}
