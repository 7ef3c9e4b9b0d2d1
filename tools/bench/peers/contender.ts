/** What is compared: a way to take a lock on DynamoDB and to give it back, and what it cannot do. */
import type { DynamoDBClient, DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { ownCpuUs } from "../turns.ts";

/** Where contenders work: on the engine, or on a proxy in front of it. */
export interface Place {
  /** One for each contender: with one set of connections. */
  readonly dynamodb: DynamoDBClient;
  /** The settings of that client, for what does not use the SDK. */
  readonly clientConfig: DynamoDBClientConfig;
  /** The lease table: `pk` and `sk`. */
  readonly leaseTable: string;
  /** A table with the one key `id`, as the others document it. */
  readonly plainTable: string;
}

/** How a contender holds its locks. */
export interface Holding {
  readonly leaseDurationMs: number;
  /** Renews each lock so often; undefined: never. */
  readonly heartbeatMs?: number;
}

/** A lock that is held. */
export interface HeldLock {
  release(): Promise<unknown>;
}

/** A process that is not this one. */
export interface OtherProcess {
  /** Since its start. */
  used(): Promise<{ readonly cpuUs: number; readonly requests: number }>;
  /** After a collection of garbage. */
  heapBytes(): Promise<number>;
}

/** A contender at work: as if it were alone in its process. */
export interface LockClient {
  /** @default - this process */
  readonly runsIn?: OtherProcess;
  /** Takes the lock; waits for it in the contender's own way, or rejects where it does not wait. */
  acquire(key: string): Promise<HeldLock>;
  /** Ends every wait and every heartbeat; the SDK client stays. */
  close(): Promise<void> | void;
}

/** What not every contender does. */
export type Ability = "takeOver" | "handOver" | "hold" | "bundle";

/** A lock that is compared, or the floor. */
export interface Contender {
  readonly id: string;
  readonly name: string;
  /** Why the cell is empty where a contender has nothing to show. */
  readonly cannot: Partial<Record<Ability, string>>;
  /** A key of it can be used once only. @default false */
  readonly usesKeysOnce?: true;
  open(place: Place, holding: Holding): LockClient;
}

/** What the process of a client has used of the processor since its start, in microseconds. */
export async function cpuUsOf({ runsIn }: Pick<LockClient, "runsIn">): Promise<number> {
  return runsIn === undefined ? await ownCpuUs() : (await runsIn.used()).cpuUs;
}
