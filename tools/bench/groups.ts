import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Lease, LeaseClient } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import type { Target } from "../../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../../test/support/table.ts";
import { countRequests, listed } from "./counted.ts";
import { median, quantile } from "./statistics.ts";

/** What it takes to acquire ten locks, and to give them back. */
export interface GroupCost {
  readonly by: string;
  readonly requests: number;
  /** Such as `1 TransactWriteItems`. */
  readonly sent: string;
  readonly p50: number;
  readonly p99: number;
  /** Of the medians, to ten acquisitions one after the other. */
  readonly ratio: number;
  /** The lowest and the highest ratio of a round. */
  readonly lowest: number;
  readonly highest: number;
  readonly releaseRequests: number;
  readonly releaseP50: number;
}

/** Releases what was acquired. */
type Release = () => Promise<unknown>;

interface Way {
  readonly by: string;
  readonly acquire: () => Promise<Release>;
  /** The times of each round. */
  readonly rounds: number[][];
  readonly releases: number[];
}

/** How many locks are acquired. */
export const groupKeys = 10;
const warmUpCycles = 20;
const rounds = 10;
const cyclesPerRound = 12;

/** Acquires ten free locks together, one after the other, and all at once, in turns. */
export async function benchGroups(engine: Target, leases: TestTable): Promise<GroupCost[]> {
  const dynamodb = sdkClient(engine);
  const client = leases.client({ dynamodb });
  const ways = waysOf(client, leases);
  for (const way of ways) for (let index = 0; index < warmUpCycles; index += 1) await (await way.acquire())();
  for (let round = 0; round < rounds; round += 1) {
    const turn = round % ways.length;
    for (const way of [...ways.slice(turn), ...ways.slice(0, turn)]) await runRound(way);
  }

  const [base] = ways as readonly [Way, ...Way[]];
  const baseMedians = base.rounds.map(median);
  const costs: GroupCost[] = [];
  for (const way of ways) {
    const all = way.rounds.flat();
    const ratios = way.rounds.map((round, index) => median(round) / (baseMedians[index] ?? Number.NaN));
    costs.push({
      by: way.by,
      ...(await countOnce(dynamodb, way)),
      p50: median(all),
      p99: quantile(all, 0.99),
      ratio: median(all) / median(base.rounds.flat()),
      lowest: Math.min(...ratios),
      highest: Math.max(...ratios),
      releaseP50: median(way.releases),
    });
  }
  dynamodb.destroy();
  return costs;
}

function waysOf(client: LeaseClient, leases: TestTable): readonly Way[] {
  const keys = (): string[] => Array.from({ length: groupKeys }, () => leases.newKey());
  const releaseAll =
    (held: readonly Lease[]): Release =>
    () =>
      Promise.all(held.map((lease) => lease.release()));
  const [serial, parallel, grouped] = [keys(), keys(), keys()];
  const way = (by: string, acquire: Way["acquire"]): Way => ({ by, acquire, rounds: [], releases: [] });
  return [
    way("10 acquire, one after the other", async () => {
      const held: Lease[] = [];
      for (const key of serial) held.push(await client.acquire(key));
      return releaseAll(held);
    }),
    way("10 acquire at once", async () =>
      releaseAll(await Promise.all(parallel.map((key) => client.acquire(key)))),
    ),
    way("acquireAll", async () => {
      const group = await acquireAll(client, grouped);
      return () => group.release();
    }),
  ];
}

async function runRound({ acquire, rounds: measured, releases }: Way): Promise<void> {
  const times: number[] = [];
  for (let index = 0; index < cyclesPerRound; index += 1) {
    const start = performance.now();
    const release = await acquire();
    const acquired = performance.now();
    await release();
    times.push(acquired - start);
    releases.push(performance.now() - acquired);
  }
  measured.push(times);
}

/** Counts apart from the timed cycles. */
async function countOnce(
  dynamodb: DynamoDBClient,
  { acquire }: Way,
): Promise<Pick<GroupCost, "requests" | "sent" | "releaseRequests">> {
  const counter = countRequests(dynamodb);
  const release = await acquire();
  const cost = { requests: counter.total, sent: listed(counter.sent) };
  counter.reset();
  await release();
  const releaseRequests = counter.total;
  counter.stop();
  return { ...cost, releaseRequests };
}
