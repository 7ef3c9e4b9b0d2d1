/** Waiting in virtual time, in all its scenarios: what it costs now, and what it cost before waiters learnt how long holds last. */
import type { WaitOrder } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { against, heading, note, table } from "../report.ts";
import {
  type Acquire,
  constant,
  deadAhead,
  drain,
  exponential,
  giveUps,
  type HandOvers,
  handOvers,
  longHold,
  permits,
} from "./scenarios.ts";

const waitMs = 100 * 3_600_000;

const inOrder: Acquire = (client, signal) => {
  const order = fair({ maxWaiters: 500 });
  return client.acquire("k", { order, waitMs, heartbeat: true, ...(signal && { signal }) });
};
const unordered: Acquire = (client) => client.acquire("k", { waitMs, heartbeat: true });

const permitOf =
  (count: number, order?: WaitOrder): Acquire =>
  (client) =>
    new Semaphore(client, "s", { permits: count, ...(order && { order }) }).acquire({
      waitMs,
      heartbeat: true,
    });

/** One figure beside what it was before, and what was aimed at. */
interface Measurement {
  readonly what: string;
  readonly before: string;
  readonly now: string;
  readonly goal: string;
}

/** Requests for each hand-over, and how long the lock is idle. */
function handOver(
  what: string,
  before: { readonly requests: number; readonly p50: number },
  now: HandOvers,
  mostRequests = Number.POSITIVE_INFINITY,
  longestP50 = before.p50,
): Measurement {
  const shown = ({ requests, p50 }: typeof before): string => `${requests.toFixed(1)}, ${p50.toFixed(0)} ms`;
  const isReached = now.requests <= mostRequests && now.p50 <= longestP50;
  const goal = Number.isFinite(mostRequests)
    ? against(`at most ${mostRequests}, ${longestP50.toFixed(0)} ms`, isReached)
    : "";
  return { what, before: shown(before), now: `${shown(now)}, mean ${now.mean.toFixed(0)}`, goal };
}

function seconds(what: string, before: string, nowMs: number, most: number): Measurement {
  const now = (nowMs / 1000).toFixed(1);
  return { what, before, now: `${now} s`, goal: against(`at most ${most} s`, nowMs <= most * 1000) };
}

/** Measures all scenarios: some 20 s of CPU. */
export async function benchWaiting(): Promise<Measurement[]> {
  const measured: Measurement[] = [];
  const alike = [
    { waiters: 2, before: { requests: 15.5, p50: 82 }, most: 12 },
    { waiters: 10, before: { requests: 17.4, p50: 89 }, most: 16 },
    { waiters: 50, before: { requests: 19.8, p50: 90 }, most: 18 },
  ];
  for (const { waiters, before, most } of alike) {
    const now = await handOvers(inOrder, waiters, constant(1_000), "new", waiters > 10 ? 50 : 150);
    measured.push(handOver(`in order, ${waiters} wait, holds of 1 s`, before, now, most));
  }
  const random = [
    { waiters: 2, before: { requests: 22, p50: 62 } },
    { waiters: 10, before: { requests: 27.5, p50: 66 } },
  ];
  for (const { waiters, before } of random) {
    const now = await handOvers(inOrder, waiters, exponential(1_000));
    measured.push(handOver(`... holds of random length, ${waiters} wait`, before, now));
  }
  const unorderedNow = await handOvers(unordered, 2, constant(2_000), "lasting");
  const unorderedBefore = { requests: 7.9, p50: 710 };
  measured.push(handOver("unordered, 2 wait, holds of 2 s", unorderedBefore, unorderedNow, 7.9, 355));
  const stranger = await handOvers(unordered, 2, constant(2_000));
  measured.push(handOver("... each in a process that is new", unorderedBefore, stranger));

  const deaths: [typicalMs: number, before: string][] = [
    [20, "8.7 to 14.1 s"],
    [1_000, "8.9 to 49.1 s"],
    [10_000, "9.6 to 53.1 s"],
    [60_000, "8.6 to 68.1 s"],
  ];
  for (const [typicalMs, before] of deaths) {
    const waits: number[] = [];
    for (const dead of [1, 5, 20, 100]) waits.push(await deadAhead(inOrder, dead, typicalMs));
    const what = `1 to 100 dead ahead, holds of ${typicalMs} ms: until a living one gets in`;
    measured.push(seconds(what, before, Math.max(...waits), 13));
  }
  const drained = await drain(inOrder, 15, 5_000, 20);
  measured.push(seconds("15 wait, holds fall from 5 s to 20 ms: drained", "38.5 s", drained, 10));
  const idle = await giveUps(inOrder, 15, 13, 20_000);
  measured.push(seconds("13 of 15 give up in a hold of 20 s: idle", "52.9 s", idle, 8));
  const long: [typicalMs: number | undefined, before: string][] = [
    [undefined, "13848 + 696"],
    [1_000, "26990 + 712"],
    [3_600_000, "3126 + 627"],
  ];
  for (const [typicalMs, before] of long) {
    const { reads, writes } = await longHold(inOrder, typicalMs, 3_600_000);
    const what = `the head in a hold of an hour, typical ${typicalMs ?? "unknown"}: reads + writes`;
    measured.push({
      what,
      before,
      now: `${reads} + ${writes}`,
      goal: against("at most 500", reads + writes <= 500),
    });
  }
  const pools: [permits: number, before: string][] = [
    [1, "6.4, 7.8"],
    [5, "12.9, 38.1"],
    [20, "12.2, 154.8"],
  ];
  for (const [count, before] of pools) {
    const plain = await permits(permitOf(count), 3 * count, exponential(100));
    const ordered = await permits(permitOf(count, fair({ maxWaiters: 500 })), 3 * count, exponential(100));
    const what = `semaphore of ${count}, holds of 100 ms: permits a second in order, and without`;
    const now = `${ordered.toFixed(1)}, ${plain.toFixed(1)}`;
    measured.push({ what, before, now, goal: against("at least 80 %", ordered >= 0.8 * plain) });
  }
  return measured;
}

/** Prints the table. */
export function reportWaiting(measured: readonly Measurement[]): void {
  heading("Waiting, in virtual time");
  table(
    ["what", "before", "now", "goal"],
    measured.map(({ what, before, now, goal }) => [what, before, now, goal]),
  );
  note(
    "each waiter is alone in its process; an answer takes 10 ms; a hand-over's figures are its requests and its idle p50",
  );
}
