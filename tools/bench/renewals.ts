import type { Clock, Lease } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { bentClock, type TestTable } from "../../test/support/table.ts";
import { countRequests, listed } from "./counted.ts";
import { median } from "./statistics.ts";

/** What it takes to renew all leases once. */
export interface RenewalCost {
  readonly by: string;
  /** Such as `4 BatchExecuteStatement`. */
  readonly sent: string;
  readonly ms: number;
  readonly cpuMs: number;
}

interface Sample {
  readonly sent: string;
  readonly ms: number;
  readonly cpuMs: number;
}

const leaseCount = 100;
const intervalMs = 1_000;
const warmUpRounds = 5;
const rounds = 20;

/** Renews 100 leases by one beat of their common heartbeat, and one by one, in turns. */
export async function benchRenewals(leases: TestTable): Promise<RenewalCost[]> {
  const counter = countRequests(leases.dynamodb);
  const heart = new Heart();
  let renewed = 0;
  let onAllRenewed = (): void => undefined;
  const client = leases.client({
    clock: heart.clock,
    renewals: together(),
    onEvent: ({ type }) => {
      if (type === "renewed" && ++renewed % leaseCount === 0) onAllRenewed();
    },
  });
  const acquirer = leases.client();
  const handles = await Promise.all(
    Array.from({ length: leaseCount }, async () => (await acquirer.acquire(leases.newKey())).toJSON()),
  );
  const held: Lease[] = handles.map((handle) => client.adopt(handle, { heartbeat: intervalMs }));

  const measure = async (renewAll: () => Promise<unknown>): Promise<Sample> => {
    counter.reset();
    const cpu = process.cpuUsage();
    const start = performance.now();
    await renewAll();
    const ms = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    return { sent: listed(counter.sent), ms, cpuMs: (user + system) / 1000 };
  };
  const shared: Sample[] = [];
  const single: Sample[] = [];
  for (let round = 0; round < warmUpRounds + rounds; round += 1) {
    const byHeartbeat = await measure(
      () =>
        new Promise<void>((resolve) => {
          onAllRenewed = resolve;
          heart.beat();
        }),
    );
    onAllRenewed = () => undefined;
    const byThemselves = await measure(() => Promise.all(held.map((lease) => lease.renew())));
    if (round < warmUpRounds) continue;
    shared.push(byHeartbeat);
    single.push(byThemselves);
  }
  await Promise.all(held.map((lease) => lease.release()));
  counter.stop();
  return [summary("one beat of `together()`", shared), summary("100 calls of renew()", single)];
}

function summary(by: string, samples: readonly Sample[]): RenewalCost {
  return {
    by,
    sent: samples.at(-1)?.sent ?? "",
    ms: median(samples.map(({ ms }) => ms)),
    cpuMs: median(samples.map(({ cpuMs }) => cpuMs)),
  };
}

/** A heartbeat's timer that fires when it is told, so that a beat's time can be taken from its beginning. */
class Heart {
  #aheadMs = 0;
  #fire = (): void => undefined;

  readonly clock: Clock = {
    ...bentClock({ monotonicMs: () => this.#aheadMs }),
    schedule: (callback, delayMs, options) => {
      // The only timers in the background that are as short as the interval are the heartbeat's.
      if (!options?.background || delayMs > intervalMs) return systemTimer(callback, delayMs, options);
      this.#fire = callback;
      return () => undefined;
    },
  };

  beat(): void {
    this.#aheadMs += intervalMs;
    this.#fire();
  }
}

const { schedule: systemTimer } = bentClock({});
