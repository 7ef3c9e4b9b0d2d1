import type { Target } from "../../test/support/proxy.ts";
import type { TestTable } from "../../test/support/table.ts";
import { benchFlights, type FlightCost, flightCallers } from "./flights.ts";
import { benchGroups, type GroupCost, groupKeys } from "./groups.ts";
import { benchHandOvers, type HandOverCost, handOverHoldMs, handOverMs } from "./hand-overs.ts";
import { against, heading, note, table } from "./report.ts";
import { benchTaskClaims, type TaskClaimCost } from "./task-claims.ts";

/** What the primitives beside the lock cost. */
export interface PrimitiveCosts {
  readonly groups: readonly GroupCost[];
  readonly flights: readonly FlightCost[];
  readonly tasks: TaskClaimCost;
  readonly handOvers: readonly HandOverCost[];
}

/** Measures them one after the other. */
export async function benchPrimitives(engine: Target, leases: TestTable): Promise<PrimitiveCosts> {
  return {
    groups: await benchGroups(engine, leases),
    flights: await benchFlights(engine, leases),
    tasks: await benchTaskClaims(engine, leases),
    handOvers: await benchHandOvers(engine, leases),
  };
}

/** Prints their tables. */
export function reportPrimitives({ groups, flights, tasks, handOvers }: PrimitiveCosts): void {
  reportGroups(groups);
  reportFlights(flights);
  reportTasks(tasks);
  reportHandOvers(handOvers);
}

function reportGroups(groups: readonly GroupCost[]): void {
  heading(`Acquiring ${groupKeys} free locks`);
  table(
    [
      "by",
      "requests",
      "",
      "p50 ms",
      "p99 ms",
      "ratio of p50",
      "lowest",
      "highest round",
      "release",
      "p50 ms",
      "goal",
    ],
    groups.map((cost) => [
      cost.by,
      String(cost.requests),
      cost.sent,
      cost.p50.toFixed(2),
      cost.p99.toFixed(2),
      cost.ratio.toFixed(3),
      cost.lowest.toFixed(3),
      cost.highest.toFixed(3),
      String(cost.releaseRequests),
      cost.releaseP50.toFixed(2),
      cost.by === "acquireAll" ? against("1 request", cost.requests === 1) : "",
    ]),
  );
  note(
    "in turns; ratios are to the first line of the same round; releases go out at the same time; a transaction is billed 2 write units a lock, an acquire 1",
  );
}

function reportFlights(flights: readonly FlightCost[]): void {
  heading(`${flightCallers} callers at once for a value that is missing`);
  table(
    [
      "computing takes",
      "by",
      "computations",
      "requests",
      "half have it, ms",
      "all have it, ms",
      "least",
      "most",
      "goal",
    ],
    flights.map((cost) => [
      cost.computation,
      cost.by,
      String(cost.computations),
      String(cost.requests),
      cost.halfMs.toFixed(0),
      cost.lastMs.toFixed(0),
      cost.fastestMs.toFixed(0),
      cost.slowestMs.toFixed(0),
      cost.isShared ? against("1 computation", cost.computations === 1) : "",
    ]),
  );
  note(
    "computations: the most of a round; the rest: medians of the rounds, with the least and the most of them",
  );
}

function reportTasks(cost: TaskClaimCost): void {
  const isOnce = [cost.begun, cost.different, cost.succeeded].every((count) => count === cost.tasks);
  heading(`${cost.tasks} tasks without work over ${cost.workers} processes`);
  table(
    ["succeeded", "goal", "requests a task", "goal", "s", "tasks/s", "a worker's least", "most"],
    [
      [
        String(cost.succeeded),
        against("each run once", isOnce),
        cost.requestsPerTask.toFixed(3),
        against("below 2.5, 2 is the floor", cost.requestsPerTask < 2.5),
        (cost.ms / 1000).toFixed(1),
        (cost.tasks / (cost.ms / 1000)).toFixed(0),
        String(cost.fewest),
        String(cost.most),
      ],
    ],
  );
  note(`${cost.sent}; until every worker finds the set drained`);
}

function reportHandOvers(handOvers: readonly HandOverCost[]): void {
  heading("Handing over to one of those who wait");
  table(
    ["by", "waiters", "hand-overs", "requests each", "of which reads", "p50 ms", "p90 ms", "longest wait, s"],
    handOvers.map((cost) => [
      cost.by,
      String(cost.waiters),
      String(cost.handOvers),
      cost.requests.toFixed(1),
      cost.reads.toFixed(1),
      cost.p50.toFixed(0),
      cost.p90.toFixed(0),
      (cost.longestWaitMs / 1000).toFixed(1),
    ]),
  );
  note(
    `within ${handOverMs / 1000} s; each holds for ${handOverHoldMs} ms, and another joins at every grant: its first attempt, all looks, the acquisition and the release count, 2 requests at the least; whoever never got it counts with the time until the end`,
  );
}
