import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { Random } from "../../../test/worlds/random.ts";
import { LimitedTable, type Load, type Throughput } from "./limited-table.ts";

/** Processes with the real client on one table with limits, in virtual time. The same each time. */
export class LimitedWorld {
  readonly clock: ManualClock = new ManualClock();
  readonly table: LimitedTable;
  readonly random: Random;
  /** Leases that a process has lost while it kept them. */
  lost = 0;
  #tokens = 0;

  constructor(limits?: Throughput, seed = 1) {
    this.random = new Random(seed);
    this.table = new LimitedTable(this.clock, this.random, limits);
  }

  /** A process with a client of its own. Owners are as long as those by default: a host's name and a process's number. */
  process(options: Pick<LeaseClientOptions, "leaseDurationMs"> = {}): LeaseClient {
    const { clock, random, table } = this;
    const token = (): string => `00000000-0000-4000-8000-${String(++this.#tokens).padStart(12, "0")}`;
    return new LeaseClient({
      ...options,
      store: table,
      clock,
      owner: `ip-10-0-0-0.ec2.internal:${String(this.#tokens).padStart(5, "0")}:00000000`,
      randomness: { token, fraction: () => random.fraction() },
      onEvent: ({ type }) => {
        if (type === "lost") this.lost += 1;
      },
    });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.schedule(resolve, ms));
  }

  /** Lets time pass until a promise has settled. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
    };
    promise.then(end, end);
    while (!isSettled) await this.clock.advance(10);
    return await promise;
  }

  /** Lets so many seconds pass, and gives what was sent in a second of them, on average. */
  async during(seconds: number): Promise<Load> {
    const before = { ...this.table.load };
    await this.clock.advance(seconds * 1_000);
    const after = this.table.load;
    const rate = (name: keyof Load): number => (after[name] - before[name]) / seconds;
    return {
      written: rate("written"),
      read: rate("read"),
      throttled: rate("throttled"),
      sent: rate("sent"),
      conflicts: rate("conflicts"),
    };
  }
}
