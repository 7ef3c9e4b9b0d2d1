/**
 * Machines whose clocks are wrong, beside a table that tells the right time with each of its answers: whatever runs under
 * a lease has to keep its promise on each of them.
 */
import type { CallOptions, Clock, LeaseStore } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";

const minute = 60_000;
const hour = 60 * minute;

/** One machine's clocks, made of the right time. */
export class Machine implements Clock {
  readonly #world: ManualClock;
  readonly #wallMs: number;
  #stepsMs = 0;
  #suspendedMs = 0;
  #suspendedAt: number | undefined;
  #late: (() => void)[] = [];

  constructor(world: ManualClock, wallMs: number) {
    this.#world = world;
    this.#wallMs = wallMs;
  }

  now(): number {
    return this.#world.now() + this.#wallMs + this.#stepsMs;
  }

  /** Stands still while the machine is suspended, as Linux's does. */
  monotonic(): number {
    return (this.#suspendedAt ?? this.#world.monotonic()) - this.#suspendedMs;
  }

  /** Fires by the monotonic clock, and never while the machine is suspended. */
  schedule(callback: () => void, delayMs: number): () => void {
    const dueAt = this.monotonic() + delayMs;
    let cancel = (): void => undefined;
    const arm = (): void => {
      cancel = this.#world.schedule(
        () => {
          if (this.#suspendedAt !== undefined) this.#late.push(arm);
          else if (dueAt - this.monotonic() > 0.001) arm();
          else callback();
        },
        Math.max(0, dueAt - this.monotonic()),
      );
    };
    let isCancelled = false;
    arm();
    return () => {
      isCancelled = true;
      cancel();
      this.#late = this.#late.filter((one) => one !== arm || !isCancelled);
    };
  }

  /** Sets its wall clock. */
  step(ms: number): void {
    this.#stepsMs += ms;
  }

  /** Stops the machine, while time goes on for everybody else. */
  async suspend(ms: number): Promise<void> {
    this.#suspendedAt = this.#world.monotonic();
    await this.#world.advance(ms);
    this.#suspendedAt = undefined;
    this.#suspendedMs += ms;
    for (const arm of this.#late.splice(0)) arm();
    await this.#world.advance(0);
  }
}

/** A way in which a machine's clocks are wrong. */
export interface WrongClock {
  readonly name: string;
  /** How far its wall clock is ahead. */
  readonly wallMs: number;
  /** What happens to it while work runs under a lease. */
  readonly midway: (machine: Machine) => Promise<void> | void;
}

const nothing = (): void => undefined;

/** Clocks with which work keeps the lease that it renews: whatever their wall clocks show, the lease lasts. */
export const wrongClocks: readonly WrongClock[] = [
  { name: "5 minutes fast", wallMs: 5 * minute, midway: nothing },
  { name: "5 minutes slow", wallMs: -5 * minute, midway: nothing },
  { name: "3 hours fast", wallMs: 3 * hour, midway: nothing },
  { name: "3 hours slow", wallMs: -3 * hour, midway: nothing },
  { name: "set 2 s forwards", wallMs: 0, midway: (machine) => machine.step(2_000) },
  { name: "set an hour back", wallMs: 0, midway: (machine) => machine.step(-hour) },
  { name: "fast, and then corrected", wallMs: 5 * minute, midway: (machine) => machine.step(-5 * minute) },
  { name: "suspended for 5 s", wallMs: 0, midway: (machine) => machine.suspend(5_000) },
];

/** Clocks after which no lease of a minute can be believed in: each shows that more time has passed, or may have. */
export const lapses: readonly WrongClock[] = [
  { name: "suspended for 5 minutes", wallMs: 0, midway: (machine) => machine.suspend(5 * minute) },
  {
    name: "slow, and suspended for 5 minutes",
    wallMs: -hour,
    midway: (machine) => machine.suspend(5 * minute),
  },
  { name: "set an hour forwards", wallMs: 0, midway: (machine) => machine.step(hour) },
];

/** The world that all of them see rightly: its time, its table. */
export class WorldOfClocks {
  readonly time = new ManualClock(Date.UTC(2026, 11, 1));
  readonly table = new MemoryLeaseStore();
  /** The table as each machine reaches it. */
  readonly store: LeaseStore = farAway(this.table, () => this.time.now());

  machine({ wallMs }: Pick<WrongClock, "wallMs"> = { wallMs: 0 }): Machine {
    return new Machine(this.time, wallMs);
  }
}

/** A store that is not in this process: each of its answers tells the service's time, to a second. */
export function farAway(table: LeaseStore, now: () => number): LeaseStore {
  const timed = async <T>({ timed }: CallOptions, send: () => Promise<T>): Promise<T> => {
    const answered = timed?.();
    try {
      return await send();
    } finally {
      const second = Math.floor(now() / 1_000) * 1_000;
      answered?.({ earliest: second, latest: second + 1_000 });
    }
  };
  return {
    tableName: table.tableName,
    update: (request, call) => timed(call, () => table.update(request, call)),
    updateMany: (requests, call) => timed(call, () => table.updateMany(requests, call)),
    transact: (entries, call) => timed(call, () => table.transact(entries, call)),
    get: (request, call) => timed(call, () => table.get(request, call)),
    query: (request, call) => timed(call, () => table.query(request, call)),
    scan: (request, call) => timed(call, () => table.scan(request, call)),
  };
}
