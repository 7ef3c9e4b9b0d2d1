/** What the lease table shows of its leases, write by write, and what the instances tell of them. */
import { type AttributeValue, DescribeTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DescribeStreamCommand, type DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { LeaseEvent } from "@leasehold/client";
import { type LeaseRecord, readRecord } from "@leasehold/client/record";
import { openShard, readShard } from "@leasehold/local";

/** One write of a lease item: the leases that the item showed before it and after it. */
export interface LeaseChange {
  /** Undefined when the lease had no holder. */
  readonly before: LeaseRecord | undefined;
  /** Undefined where the write ended the lease. */
  readonly after: LeaseRecord | undefined;
}

/** A lease as the table shows it. Times are epoch milliseconds. */
interface GrantedLease {
  readonly owner: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
}

/** A lease that was granted. */
export interface Grant extends GrantedLease {
  readonly sortKey: string;
  /** When the request that got it was sent: not before the lease was free. */
  readonly acquiredAt: number;
  /** The lease that still stood in the item and was taken over; undefined where it had been released. */
  readonly from: GrantedLease | undefined;
}

/**
 * Finds the grants under one key, in the order in which the table made them.
 *
 * The table's stream is the evidence, and no clock orders it. A process may learn late of its grant or its release:
 * that changes nothing here. Times count for takeovers alone. The taker records when it sent the request, which no
 * delay can make earlier, and the holder recorded how long its lease lasts.
 *
 * @param changes every write of the table, in the order of its stream
 */
export function grantsIn(changes: readonly LeaseChange[], key: string): Grant[] {
  return changes.flatMap(({ before, after }) => {
    if (after === undefined || after.key !== key || after.inCooldown || after.token === before?.token)
      return [];
    const { sortKey, acquiredAt } = after;
    const from = before === undefined || before.inCooldown ? undefined : leaseOf(before);
    return [{ sortKey, acquiredAt, ...leaseOf(after), from }];
  });
}

/**
 * Counts the leases that overlapped another one: leases that were taken over before they had ended, and grants that
 * came after one with a larger fencing token, which bring an old holder back.
 */
export function overlaps(grants: readonly Grant[]): number {
  const largest = new Map<string, number>();
  return grants.filter(({ sortKey, fencingToken, acquiredAt, from }) => {
    const grew = fencingToken > (largest.get(sortKey) ?? 0);
    if (grew) largest.set(sortKey, fencingToken);
    return !grew || (from !== undefined && acquiredAt < from.expiresAt);
  }).length;
}

/** Whether a lease's holder was killed or frozen by the plan. */
export type WasCutShort = (owner: string, fencingToken: number) => boolean;

/** The owners whose leases were taken over. A lease that expired although its holder lived is marked. */
export function takenOver(grants: readonly Grant[], wasCutShort: WasCutShort): string[] {
  return grants.flatMap(({ from }) => {
    if (from === undefined) return [];
    const { owner, fencingToken } = from;
    return [wasCutShort(owner, fencingToken) ? owner : `${owner} (who was alive)`];
  });
}

function leaseOf({ owner, fencingToken, expiresAt }: LeaseRecord): GrantedLease {
  return { owner, fencingToken, expiresAt };
}

/** A lease event of one instance. */
export interface LoggedLeaseEvent {
  readonly instance: string;
  /** Epoch milliseconds: when the instance came to write it down, which may be long after it happened. */
  readonly at: number;
  readonly event: LeaseEvent;
}

/**
 * Says which leases ran out while their holders were alive: those got too little time to renew them.
 *
 * @param grants with the names of instances as owners
 */
export function ranOut(
  grants: readonly Grant[],
  log: readonly LoggedLeaseEvent[],
  wasCutShort: WasCutShort,
): string[] {
  const noticed = log.flatMap(({ instance: owner, event }) =>
    event.type === "lost" ? [{ owner, fencingToken: event.fencingToken }] : [],
  );
  const taken = grants.flatMap(({ from }) => (from === undefined ? [] : [from]));
  const owners = [...noticed, ...taken].flatMap(({ owner, fencingToken }) =>
    wasCutShort(owner, fencingToken) ? [] : [owner],
  );
  return [...new Set(owners)].map(
    (owner) => `a lease of ${owner} ran out while it was alive: its renewals came too late`,
  );
}

/** When the last lease ends that these events tell of, as far as it was told. Epoch milliseconds. */
export function endOfLease(log: readonly LoggedLeaseEvent[]): number {
  const ends = log.flatMap(({ event }) =>
    event.type === "acquired" || event.type === "renewed" ? [event.expiresAt] : [],
  );
  return Math.max(...ends);
}

/** Reads every write of a lease table from its stream, in the order in which the table made them. */
export async function leaseChanges(
  dynamodb: DynamoDBClient,
  streams: DynamoDBStreamsClient,
  tableName: string,
): Promise<LeaseChange[]> {
  const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: tableName }));
  const StreamArn = Table?.LatestStreamArn;
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  const changes: LeaseChange[] = [];
  const { signal } = new AbortController();
  const rethrow = (error: unknown): never => {
    throw error;
  };
  // A shard comes after its parent, and an item is in one of them.
  for (const { ShardId = "" } of StreamDescription?.Shards ?? []) {
    const place = { client: streams, StreamArn: String(StreamArn), ShardId, signal };
    for await (const records of readShard(place, await openShard(place, "TRIM_HORIZON"), rethrow)) {
      // An open shard has no end: an empty answer says that this was all.
      if (records.length === 0) break;
      for (const { dynamodb: change } of records) {
        changes.push({ before: leaseIn(change?.OldImage), after: leaseIn(change?.NewImage) });
      }
    }
  }
  return changes;
}

function leaseIn(image: Record<string, AttributeValue> | undefined): LeaseRecord | undefined {
  return readRecord(image && unmarshall(image));
}
