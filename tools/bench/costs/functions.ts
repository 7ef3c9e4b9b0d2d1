import { LeaseClient, type LeaseStore, type UpdateRequest } from "@leasehold/client";
import { release } from "@leasehold/client/internal";
import { metricsListener } from "@leasehold/client/metrics";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type LeaseLockOptions, leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { sumOf, type Usage } from "./prices.ts";

const key = "bench";
const hourMs = 3_600_000;

/** A run of a small function, without its requests: 512 MB for 100 ms. An assumption; its work costs what it costs. */
const handlerRun: Usage = { invocation: 1, gigabyteSecond: 0.5 * 0.1 };

/** In a table with a LeaseWakeup each release of a lock calls its function, which looks for a waiter: 1 query. */
export const wakeUp: Usage = sumOf([handlerRun, 1], [{ readUnit: 1 }, 1]);

const shown = { token: "token", fencingToken: 1 };
const ending = { shown, now: 1, retentionMs: 1, cooldown: undefined };
const releases: ReadonlySet<string> = new Set([
  release({ key }, { ...ending, slot: undefined }).request().update,
  release({ key }, { ...ending, slot: "slot" }).request().update,
]);

/** Whether a write lets a lock go. */
export function isRelease({ update }: Pick<UpdateRequest, "update">): boolean {
  return releases.has(update);
}

/** A lease store that counts what DynamoDB would bill: for items up to 1 KB a unit a request. */
class BilledStore extends MemoryLeaseStore {
  writeUnit = 0;
  readUnit = 0;

  override update(...args: Parameters<LeaseStore["update"]>): ReturnType<LeaseStore["update"]> {
    this.writeUnit += 1;
    return super.update(...args);
  }

  override get(...args: Parameters<LeaseStore["get"]>): ReturnType<LeaseStore["get"]> {
    this.readUnit += args[0].consistent ? 1 : 0.5;
    return super.get(...args);
  }

  usage(): Usage {
    return { writeUnit: this.writeUnit, readUnit: this.readUnit };
  }
}

/**
 * What a run of a singleton job's function takes: one that gets the lock, or one that finds it held. And how many metrics
 * it writes, which are charged by the month and not by the run.
 */
export async function functionRun(
  whenHeld: "skip" | "throw" | "replace",
  isHeld = false,
): Promise<{ readonly run: Usage; readonly month: Usage }> {
  const lines: string[] = [];
  const write = (line: string): void => {
    lines.push(line);
  };
  const subject = { tableName: "leases", job: "job" };
  const clock = new ManualClock(Date.UTC(2026, 10, 22));
  const store = new BilledStore();
  const client = new LeaseClient({ store, clock, onEvent: metricsListener(subject, write) });
  const options: LeaseLockOptions<unknown, string> = {
    client,
    key,
    once: true,
    whenHeld,
    ...subject,
    metrics: write,
    clock,
  };
  const run = leased(options, () => "done");
  const holder = isHeld ? await new LeaseClient({ store, clock }).acquire(key) : undefined;
  const before = store.usage();
  const event = { scheduledTime: new Date(clock.now()).toISOString() };
  await run(event, { getRemainingTimeInMillis: () => 30_000 } as Context);
  const seen = sumOf([store.usage(), 1], [before, -1]);
  await holder?.release();
  return {
    run: sumOf([seen, 1], [handlerRun, 1]),
    month: { customMetric: new Set(lines.flatMap(metricsIn)).size },
  };
}

/** Each metric of a line: CloudWatch charges for a name once for every set of dimensions. */
function metricsIn(line: string): string[] {
  const { _aws } = JSON.parse(line) as {
    readonly _aws: {
      readonly CloudWatchMetrics: readonly {
        readonly Dimensions: readonly (readonly string[])[];
        readonly Metrics: readonly { readonly Name: string }[];
      }[];
    };
  };
  return _aws.CloudWatchMetrics.flatMap(({ Dimensions, Metrics }) =>
    Metrics.flatMap(({ Name }) => Dimensions.map((dimensions) => `${Name} by ${dimensions.join()}`)),
  );
}

/** What an hour of a heartbeat takes in a process, by the lease's length. */
export async function heartbeatHour(leaseDurationMs: number): Promise<Usage> {
  const clock = new ManualClock(Date.UTC(2026, 10, 22));
  const store = new BilledStore();
  const randomness = { token: () => "token", fraction: () => 0.5 };
  await new LeaseClient({ store, clock, leaseDurationMs, randomness }).acquire(key, { heartbeat: true });
  const before = store.usage();
  await clock.advance(hourMs);
  return sumOf([store.usage(), 1], [before, -1]);
}
