/** A process under torture: it takes turns at its primitives until it is told to finish, or is killed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseClient } from "@leasehold/client";
import { SingleFlight } from "@leasehold/client/single-flight";
import type { Primitive } from "../history.ts";
import { terms } from "../terms.ts";
import { audit } from "./audit.ts";
import type { WorkerConfig } from "./config.ts";
import { WorkContext } from "./context.ts";
import { flightTurn } from "./flights.ts";
import { jobRunsOf, runTurn, taskSetOf, taskTurn } from "./jobs.ts";
import { fairTurn, groupTurn, leaderTurn, lockTurn, sharedTurn } from "./locks.ts";
import { operatedTurn } from "./operated.ts";
import { readWriteTurn, semaphoreTurn } from "./seats.ts";

type Turn = (context: WorkContext) => Promise<void>;

/** What a turn at each primitive is. Objects that a program makes once are made once. */
function turnsOf(client: LeaseClient): Readonly<Record<Primitive, Turn>> {
  const runs = jobRunsOf(client);
  const tasks = taskSetOf(client);
  const flights = new SingleFlight(client, { freshForMs: terms.freshForMs });
  return {
    lock: lockTurn,
    shared: sharedTurn,
    operated: operatedTurn,
    fair: fairTurn,
    semaphore: semaphoreTurn,
    readWrite: readWriteTurn,
    group: groupTurn,
    leader: leaderTurn,
    runs: (context) => runTurn(context, runs),
    tasks: (context) => taskTurn(context, tasks),
    singleFlight: (context) => flightTurn(context, flights),
  };
}

/** How many callers a process has at least: where few primitives are chosen, each has several. */
const leastCallers = 9;
const mostCallersEach = 3;

async function work(context: WorkContext): Promise<void> {
  const { primitives, paceMs } = context.config;
  const turns = turnsOf(context.client);
  let isFinishing = false;
  process.on("message", () => {
    isFinishing = true;
  });
  let nextTurnAt = performance.now();
  const callers = Math.min(mostCallersEach, Math.ceil(leastCallers / primitives.length));
  const call = async (primitive: Primitive): Promise<void> => {
    while (!isFinishing) {
      await turns[primitive](context);
      nextTurnAt = Math.max(nextTurnAt, performance.now()) + context.random.between(0, 2 * paceMs);
      await sleep(nextTurnAt - performance.now());
    }
  };
  await Promise.all(primitives.flatMap((each) => Array.from({ length: callers }, () => call(each))));
}

const context = new WorkContext(JSON.parse(process.argv[2] ?? "") as WorkerConfig);
const isMistaken = (error: unknown): void => {
  context.journal.event("mistake", {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  process.exit(1);
};
// Without its supervisor nobody would end it.
process.on("disconnect", () => process.exit());
process.on("uncaughtException", isMistaken);
process.on("unhandledRejection", isMistaken);
await (context.config.audits ? audit(context) : work(context));
context.journal.event("close");
await context.client.close();
context.items.destroy();
// What was left to expire is released by a timer.
process.exit(0);
