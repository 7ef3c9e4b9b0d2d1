/**
 * Durable executions that work under one lock over suspensions and replays, and other callers of that lock. The processes
 * of their invocations die at their requests, run on machines with wrong clocks, and meet a table that fails for a while.
 */
import { type DurableContext, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { type Lease, type LeaseClient, LeaseError } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/schema";
import { withDurableLease } from "@leasehold/durable";
import fc from "fast-check";
import { LeaseServiceError } from "../../../packages/client/src/base/errors.ts";
import { DurableLock } from "../../../packages/durable/src/durable-lock.ts";
import { ExecutionLease } from "../../../packages/durable/src/execution-lease.ts";
import { adminOf } from "../../support/admin.ts";
import { DurableWorld } from "../../support/durable-leases.ts";
import type { Execution } from "../../support/durable-service.ts";
import { Machine } from "../../support/wrong-clocks.ts";
import { drawn, replacing, type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";

const key = "orders/7";
const leaseDurationMs = 30_000;
/** A suspended execution renews every third of its lease, and finds a broken lease then. */
const noticeMs = leaseDurationMs / 3 + 1_000;
/** What a step of the SDK waits at most before its last attempts. */
const settleMs = 1_800_000;
const minute = 60_000;

type DurableStep =
  | {
      readonly kind: "start";
      readonly waitMs: number;
      /** The pauses between the steps of its work, in seconds. */
      readonly pauses: readonly number[];
      readonly fails: boolean;
    }
  | { readonly kind: "stop"; readonly which: number }
  | { readonly kind: "acquire" }
  | { readonly kind: "release" }
  | { readonly kind: "break" }
  | { readonly kind: "revoke" }
  | { readonly kind: "death"; readonly inRequests: number; readonly when: "before" | "after" }
  | { readonly kind: "outage"; readonly ms: number }
  | { readonly kind: "deafness"; readonly ms: number }
  | { readonly kind: "wait"; readonly ms: number };

const only = <Kind extends DurableStep["kind"]>(kind: Kind) => fc.record({ kind: fc.constant(kind) });
const lasting = <Kind extends DurableStep["kind"]>(kind: Kind, max: number) =>
  fc.record({ kind: fc.constant(kind), ms: fc.integer({ min: 1, max }) });

const step: fc.Arbitrary<DurableStep> = fc.oneof(
  drawn(6, "start", {
    waitMs: fc.constantFrom(0, minute, 10 * minute),
    pauses: fc.array(fc.constantFrom(1, 7, 20, 45, 120), { maxLength: 3 }),
    fails: fc.boolean(),
  }),
  drawn(1, "stop", { which: fc.nat(20) }),
  { weight: 2, arbitrary: only("acquire") },
  { weight: 3, arbitrary: only("release") },
  { weight: 1, arbitrary: only("break") },
  { weight: 1, arbitrary: only("revoke") },
  drawn(4, "death", {
    inRequests: fc.integer({ min: 1, max: 8 }),
    when: fc.constantFrom("before" as const, "after" as const),
  }),
  { weight: 1, arbitrary: lasting("outage", 50_000) },
  { weight: 1, arbitrary: lasting("deafness", 30_000) },
  { weight: 12, arbitrary: lasting("wait", 40_000) },
);

/** One execution, and what is known of it. */
interface Run {
  readonly name: string;
  readonly startedAt: number;
  readonly waitMs: number;
  readonly execution: Execution;
  /** The lease that its work has seen. */
  token: string | undefined;
  fence: number | undefined;
  /** Whether the work's own function has come to its end. */
  isDone: boolean;
}

class DurableLeases {
  readonly world: { killAll(): void };
  readonly #world: World;
  readonly #durable: DurableWorld;
  readonly #runs: Run[] = [];
  readonly #rival: LeaseClient;
  #rivalLease: Lease | undefined;
  /** When an operator ended or revoked leases, by their tokens, on the world's clock. */
  readonly #broken = new Map<string, number>();
  readonly #revoked = new Set<string>();
  /** At which requests processes are to die. */
  readonly #deaths: number[] = [];
  #outageUntil = 0;
  /** When a request has failed last: for as long as a lease, renewals may be missing. */
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(world: World) {
    this.#world = world;
    this.world = { killAll: () => undefined };
    let tokens = 0;
    const randomness = {
      token: () => `token ${String(++tokens).padStart(10, "0")}`,
      fraction: () => world.random.fraction(),
    };
    this.#durable = new DurableWorld(world.clock, randomness);
    this.#durable.failure = () => this.#failure();
    this.#rival = this.#durable.client();
  }

  async take(one: DurableStep): Promise<void> {
    const durable = this.#durable;
    const { clock, random } = this.#world;
    switch (one.kind) {
      case "start":
        this.#start(one);
        break;
      case "stop": {
        const running = this.#runs.filter(({ execution }) => execution.status === "RUNNING");
        const run = running[one.which % Math.max(1, running.length)];
        if (run === undefined) break;
        durable.service.stop(run.execution);
        this.#world.count("stopped");
        break;
      }
      case "acquire":
        if (this.#rivalLease?.held) break;
        await this.#quietly(async () => {
          this.#rivalLease = await this.#rival.tryAcquire(key, { leaseDurationMs });
          if (this.#rivalLease !== undefined) this.#world.count("a rival holds it");
        });
        break;
      case "release":
        await this.#quietly(async () => {
          await this.#rivalLease?.release();
        });
        break;
      case "break":
      case "revoke":
        await this.#operate(one.kind);
        break;
      case "death": {
        const at = durable.service.boundaries.length + one.inRequests;
        durable.service.killAt({ at, when: one.when });
        this.#deaths.push(at);
        break;
      }
      case "outage":
        this.#outageUntil = clock.monotonic() + one.ms;
        this.#world.count("outage");
        break;
      case "deafness":
        durable.wakes = false;
        this.#world.count("wake-ups are lost");
        clock.schedule(() => {
          durable.wakes = true;
        }, one.ms);
        break;
      case "wait":
        await this.#play(one.ms);
        break;
    }
    await this.#play(random.integer(0, 500));
  }

  /** When nothing fails any more, every execution comes to its end, and the lock is free. */
  async expectAllToEnd(): Promise<void> {
    this.#outageUntil = 0;
    await this.#quietly(async () => {
      await this.#rivalLease?.release();
    });
    for (let playedMs = 0; playedMs < settleMs; playedMs += minute) await this.#play(minute);
    const requests = this.#durable.service.boundaries.length;
    for (const at of this.#deaths) if (at <= requests) this.#world.count("death");
    for (const { name, execution } of this.#runs)
      if (execution.status === "RUNNING") this.#world.fault(`${name} never ends`);
    const lease = await this.#durable.client().tryAcquire(key);
    if (lease === undefined) this.#world.fault("the lock is stuck");
  }

  async #play(ms: number): Promise<void> {
    await this.#durable.play(ms);
    this.#look();
  }

  #failure(): Error | undefined {
    if (this.#world.clock.monotonic() >= this.#outageUntil) return undefined;
    this.#failedAt = this.#world.clock.monotonic();
    return new LeaseServiceError("LEASE_NO_ANSWER", "the table does not answer", { mayHaveLanded: false });
  }

  #start({ waitMs, pauses, fails }: DurableStep & { readonly kind: "start" }): void {
    const world = this.#world;
    const name = `run-${this.#runs.length + 1}`;
    const parts = [...pauses, 0];
    const handler = withDurableExecution(async (_: unknown, context: DurableContext) => {
      const machine = new Machine(world.clock, world.random.pick([0, 0, 5 * minute, -5 * minute]));
      world.count("invocation");
      try {
        await withDurableLease(
          context,
          this.#durable.client(machine),
          key,
          { leaseDurationMs, waitMs },
          async (lease, own) => {
            for (const [index, seconds] of parts.entries()) {
              await own.step(`part ${index}`, async () => this.#worked(run, lease.token, lease.fencingToken));
              if (seconds > 0) await own.wait({ seconds });
            }
            run.isDone = true;
            if (fails && parts.length > 1) throw new RangeError("no mugs");
          },
        );
      } catch (error) {
        this.#rejected(run, error);
        throw error;
      }
      if (!run.isDone) world.fault(`${name} succeeds, and its work has not ended`);
    });
    const run: Run = {
      name,
      startedAt: world.now,
      waitMs,
      execution: this.#durable.service.start(handler, {}, name),
      token: undefined,
      fence: undefined,
      isDone: false,
    };
    this.#runs.push(run);
  }

  /** A step of the work: nothing comes between its check of the lease and this. */
  #worked(run: Run, token: string, fence: number): void {
    const world = this.#world;
    world.count("worked");
    world.tell(run.name, `works under ${fence}`);
    const item = this.#durable.table.peek(leaseItemKey(key));
    const stands = item?.[attributeNames.token] === token && item[attributeNames.fence] === fence;
    if (!stands) world.fault(`${run.name} works without its lease`);
    if (run.fence !== undefined && run.fence !== fence)
      world.fault(`${run.name} goes on under another lease than it began with`);
    run.token = token;
    run.fence = fence;
  }

  /** An error is one that something explains. */
  #rejected(run: Run, error: unknown): void {
    const world = this.#world;
    const code = error instanceof LeaseError ? error.code : String((error as Error).message);
    world.count(`rejected: ${code}`);
    world.tell(run.name, `is rejected: ${code}`);
    const wasTroubled = this.#failedAt >= run.startedAt;
    if (code === "LEASE_LOST" && !wasTroubled && !this.#wasEnded(run))
      world.fault(`${run.name} has lost a lease that nobody has taken from it`);
    if (code === "LEASE_UNAVAILABLE" && world.now < run.startedAt + run.waitMs - 1_000)
      world.fault(`${run.name} does not wait for as long as it may`);
    if (String((error as { holder?: string }).holder).includes(`/${run.name}/`))
      world.fault(`${run.name} is refused by itself`);
    const expected = ["LEASE_LOST", "LEASE_UNAVAILABLE", "LEASE_NO_ANSWER", "no mugs"];
    if (!expected.includes(code)) world.fault(`${run.name}: ${(error as Error).stack}`);
  }

  /** Whether an operator has ended its lease, or asked for it. Before its first step, the token is not known here. */
  #wasEnded({ token }: Run): boolean {
    if (token === undefined) return this.#broken.size + this.#revoked.size > 0;
    return this.#broken.has(token) || this.#revoked.has(token);
  }

  async #operate(action: "break" | "revoke"): Promise<void> {
    const token = this.#durable.table.peek(leaseItemKey(key))?.[attributeNames.token];
    if (token === undefined) return;
    await this.#quietly(async () => {
      if (action === "break") {
        await adminOf(this.#rival).forceRelease(key, { token: String(token) });
        this.#broken.set(String(token), this.#world.now);
      } else {
        this.#revoked.add(String(token));
        await adminOf(this.#rival).requestRevocation(key, { token: String(token) });
      }
      this.#world.count(action);
    });
  }

  /** A caller of its own, whom an outage may meet too. */
  async #quietly(call: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const calling = call()
      .catch((error: unknown) => {
        if (!(error instanceof LeaseError)) throw error;
      })
      .finally(() => {
        isOver = true;
      });
    for (await this.#world.clock.advance(0); !isOver; ) await this.#play(1_000);
    await calling;
  }

  /** What must hold whenever all invocations have answered. */
  #look(): void {
    const world = this.#world;
    for (const run of this.#runs) {
      if (run.execution.status !== "RUNNING" || run.token === undefined || run.isDone) continue;
      const brokenAt = this.#broken.get(run.token);
      if (brokenAt === undefined) continue;
      const from = Math.max(brokenAt, this.#failedAt + noticeMs);
      if (world.now - from > noticeMs) world.fault(`${run.name} does not notice that its lease was broken`);
    }
    const { token } = attributeNames;
    const lease = this.#rivalLease;
    if (lease?.held && !this.#broken.has(lease.token)) {
      const holder = this.#durable.table.peek(leaseItemKey(key))?.[token];
      if (holder !== lease.token) world.fault(`a rival believes to hold what ${String(holder)} holds`);
    }
  }
}

export const durableLeases: Simulation = {
  name: "durable-leases",
  claim:
    "durable executions work under their leases alone, over suspensions and replays, learn of a break in time, and come to an end",
  worlds: 60,
  mustHappen: [
    "a rival holds it",
    "break",
    "death",
    "invocation",
    "outage",
    "rejected: LEASE_LOST",
    "rejected: LEASE_UNAVAILABLE",
    "rejected: no mugs",
    "revoke",
    "stopped",
    "wake-ups are lost",
    "worked",
  ],
  mistakes: [
    {
      what: "steps that begin without a look at the lease",
      plant: replacing(ExecutionLease.prototype, "run", () => (body) => body()),
      violation: /works without its lease/,
    },
    {
      what: "a break that is taken for a release of its own",
      plant: replacing(DurableLock.prototype, "wasReleasedByHolder", () => async () => true),
      violation: /does not notice that its lease was broken/,
    },
    {
      what: "repeated attempts that do not know their owner again",
      plant: replacing(DurableLock.prototype, "attempt", (original) => {
        let attempts = 0;
        return function (this: DurableLock, owner) {
          attempts += 1;
          return original.call(this, `${attempts}#${owner}`);
        };
      }),
      violation: /is refused by itself/,
    },
  ],
  play: stepByStep({
    step,
    fewestSteps: 20,
    mostSteps: 50,
    make: (world) => new DurableLeases(world),
    end: (scene) => scene.expectAllToEnd(),
  }),
};
