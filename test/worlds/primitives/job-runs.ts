import { type Item, LeaseError, type LeaseStore } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import type { JobRuns, RunContext, RunState } from "../../../packages/jobs/src/index.ts";
import { storedAttempts } from "../../../packages/jobs/src/runs/attempt-history.ts";
import { runAttributeNames, runItemKey } from "../../../packages/jobs/src/runs/schema.ts";
import { entriesOf, ownWrite, transactIn } from "../../support/own-transaction.ts";
import type { Holding } from "../beliefs.ts";
import {
  Cluster,
  clockSkewMs,
  everyMishap,
  leaseDurationMs,
  type Mishap,
  mishaps,
  type Running,
  WorkError,
} from "../cluster.ts";
import type { Host } from "../host.ts";
import { drawn, type Scene, type Simulation, saying, stepByStep, without } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { staleTakeover } from "./lease-mistakes.ts";

const processes = 4;
const job = "report";
const maxAttempts = 3;
const keepForMs = 60_000;
/** The run history keeps an item an hour longer than it promises. */
const nightMs = keepForMs + 2 * 3_600_000;
const slotMs = 20_000;
const states: readonly RunState[] = ["running", "succeeded", "failed", "lost", "skipped"];

export type JobStep =
  | {
      readonly kind: "run";
      readonly process: number;
      /** The latest slot, or one before it. */
      readonly ago: number;
      readonly workMs: number;
      readonly outcome: "succeeds" | "succeedsIn" | "fails" | "hangs";
      readonly waitMs: number;
    }
  | { readonly kind: "get" | "skip"; readonly process: number; readonly ago: number }
  | { readonly kind: "night" };

const anyProcess = fc.nat(processes - 1);
const ago = fc.nat(1);
const usualStep: fc.Arbitrary<JobStep | Mishap> = fc.oneof(
  drawn(9, "run", {
    process: anyProcess,
    ago,
    workMs: fc.integer({ min: 0, max: 12_000 }),
    outcome: fc.constantFrom(
      "succeeds" as const,
      "succeedsIn" as const,
      "fails" as const,
      "fails" as const,
      "hangs" as const,
    ),
    waitMs: fc.constantFrom(0, 0, 15_000),
  }),
  drawn(6, "get", { process: anyProcess, ago }),
  drawn(1, "skip", { process: anyProcess, ago }),
  ...mishaps(processes),
);
const night: fc.Arbitrary<JobStep | Mishap> = fc.record({ kind: fc.constant("night" as const) });
const step: fc.Arbitrary<JobStep | Mishap> = fc.oneof(
  { weight: 80, arbitrary: usualStep },
  { weight: 1, arbitrary: night },
);

/** How many work, how often at one slot, how far slots are apart, and how many of them count. */
const usual = { workers: processes, attempts: maxAttempts, everyMs: slotMs, slots: 2 };

export class Schedule implements Scene<JobStep> {
  readonly world: Cluster<JobRuns>;
  /** What works were given: the slot and the number of the attempt. */
  readonly #begun = new Set<string>();
  /** Slots for which some caller was told of a success. */
  readonly #succeeded = new Set<string>();

  readonly #stores = new WeakMap<JobRuns, LeaseStore>();
  readonly #maxAttempts: number;
  readonly #slotMs: number;
  readonly #slots: number;

  constructor(world: World, options: Partial<typeof usual> = {}) {
    const { workers, attempts, everyMs, slots } = { ...usual, ...options };
    this.#maxAttempts = attempts;
    this.#slotMs = everyMs;
    this.#slots = slots;
    this.world = new Cluster<JobRuns>(world, {
      processes: workers,
      begin: (client, { release }, _index, store) => {
        const runs = new release.JobRuns(client, job, { maxAttempts: attempts, keepForMs });
        this.#stores.set(runs, store);
        return runs;
      },
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_UNAVAILABLE", "LEASE_LOST", "LEASE_SLOT_DONE", "LEASE_RUNS_EXHAUSTED"],
    });
  }

  async take(one: JobStep): Promise<void> {
    if (one.kind === "night") await this.#night();
    else this.#call(one);
  }

  /** In calm weather, whatever has attempts left is run to success. */
  async end(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    world.killAll();
    const slots = Array.from({ length: this.#slots }, (_, ago) => this.#slot(ago));
    await world.clock.advance(leaseDurationMs + 2 * clockSkewMs + 1);
    const running = world.at(0);
    for (const slot of slots) {
      const before = world.table.peek(runItemKey(job, slot));
      const left = this.#maxAttempts - Number(before?.[runAttributeNames.attempt] ?? 0);
      const isDone = before?.[attributeNames.doneSlot] !== undefined;
      const isOpen = !isDone && left > 0;
      const code = isDone ? "LEASE_SLOT_DONE" : isOpen ? "none" : "LEASE_RUNS_EXHAUSTED";
      let end = "nothing";
      running.parts
        .run(slot, (context) => this.#begin(running.process, context), { waitMs: 10_000 })
        .then(
          () => {
            end = "none";
          },
          (error: unknown) => {
            end = error instanceof LeaseError ? error.code : String(error);
          },
        );
      await world.clock.advance(10_000);
      if (end !== code)
        world.fault(`${slot} ended with ${end} in place of ${code}: ${JSON.stringify(before)}`);
      world.count(`in calm weather: ${code}`);
    }
  }

  #call(one: Extract<JobStep, { kind: "run" | "get" | "skip" }>): void {
    const { world } = this;
    const running = world.at(one.process);
    const slot = this.#slot(one.ago);
    if (one.kind === "run") this.#run(running, slot, one);
    else if (one.kind === "get") {
      world.watch(running, running.parts.get(slot), (run) => this.#checkShown(slot, run));
    } else world.watch(running, running.parts.skip(slot), () => world.count("skipped"));
  }

  #run(running: Running<JobRuns>, slot: string, one: Extract<JobStep, { kind: "run" }>): void {
    const { world } = this;
    const { process, parts } = running;
    const work = async (context: RunContext): Promise<string> => {
      let isEnding = false;
      const { lease } = context;
      // A process that has begun to end an attempt acts on its lease no more, until the answer comes.
      const holding = {
        fencingToken: lease.fencingToken,
        get held() {
          return !isEnding && lease.held;
        },
      };
      this.#begin(process, context, holding);
      context.progress({ by: process.name });
      await process.pause(one.outcome === "hangs" ? keepForMs : one.workMs);
      if (one.outcome === "fails") throw new WorkError();
      const store = this.#stores.get(parts);
      // An earlier release has no such method.
      if (one.outcome === "succeedsIn" && "succeedIn" in context && store !== undefined) {
        isEnding = true;
        const { slot, attempt } = context;
        const own = { pk: "users", sk: `${slot} ${attempt}` };
        await context.succeedIn((items) => transactIn(store, [...entriesOf(items), ownWrite(own)]));
        world.count("succeeded in a transaction");
        if (world.table.peek(own) === undefined) world.fault(`${slot} succeeded without its own write`);
      }
      return process.name;
    };
    const call = parts.run(slot, work, { waitMs: one.waitMs });
    world.watch(running, call, () => this.#confirmed(slot));
  }

  #begin(process: Host, { slot, attempt, lease }: RunContext, holding: Holding = lease): void {
    const { world } = this;
    world.count("attempt");
    if (attempt > 1) world.count("retry");
    const id = `${slot} ${attempt}`;
    if (this.#begun.has(id)) world.fault(`the attempt ${attempt} at ${slot} was given to two works`);
    this.#begun.add(id);
    if (!(attempt >= 1 && attempt <= this.#maxAttempts))
      world.fault(`${slot} was tried as the attempt ${attempt}`);
    if (this.#succeeded.has(slot)) world.fault(`${slot} was tried again after its success`);
    world.beliefs.add(process, holding, runItemKey(job, slot));
  }

  #confirmed(slot: string): void {
    this.world.count("success confirmed");
    if (this.#succeeded.has(slot)) this.world.fault(`two callers were told that they have run ${slot}`);
    this.#succeeded.add(slot);
    const state = this.world.table.peek(runItemKey(job, slot))?.[runAttributeNames.state];
    if (state !== "succeeded") this.world.fault(`${slot} was confirmed, and shows as ${state}`);
  }

  #checkShown(slot: string, run: Awaited<ReturnType<JobRuns["get"]>>): void {
    const { world } = this;
    world.count(`shown: ${run?.state}`);
    if (run === undefined) return;
    const isAllowed =
      states.includes(run.state) &&
      run.slot === slot &&
      run.attempt >= (run.state === "skipped" ? 0 : 1) &&
      run.attempt <= this.#maxAttempts &&
      run.lostAttempts <= run.attempt &&
      run.exhausted ===
        ((run.state === "failed" || run.state === "lost") && run.attempt === this.#maxAttempts);
    if (!isAllowed) world.fault(`${slot} is shown as ${JSON.stringify(run)}`);
    const latest = run.attempts.at(-1);
    const isShown =
      run.state === "skipped" || (latest?.attempt === run.attempt && latest.state === run.state);
    if (!isShown) world.fault(`${slot} is ${run.state}, and its latest attempt is ${JSON.stringify(latest)}`);
    if (run.attempts.length > 1) world.count("shown: earlier attempts");
  }

  /** Everybody dies, and ttl forgets all runs: their slots are refused by then. */
  async #night(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clock.advance(nightMs);
    await world.befall({ kind: "collect" });
  }

  #changed(changes: readonly Change[]): void {
    for (const { key, before, after } of changes) {
      const { state, attempt } = runAttributeNames;
      const { doneSlot, token } = attributeNames;
      const [was, is] = [Number(before?.[attempt] ?? 0), Number(after?.[attempt] ?? 0)];
      const wasDone = before?.[doneSlot] !== undefined;
      if (after !== undefined) this.#checkHistory(String(key.sk), before, after);
      if (is < was || is > was + 1 || is > this.#maxAttempts) {
        this.world.fault(`${key.sk} went from the attempt ${was} to ${is}`);
      }
      if (wasDone && (after?.[state] !== before[state] || after?.[token] !== undefined)) {
        this.world.fault(`${key.sk} was ${before[state]}, and is ${after?.[state]} of ${after?.[token]}`);
      }
      if (!wasDone && after?.[doneSlot] !== undefined && after[state] === "succeeded") {
        this.world.count("success recorded");
        if (before?.[token] === undefined) this.world.fault(`${key.sk} succeeded by nobody`);
      }
    }
  }

  /** Each attempt that ends without success is stored with the write that ends it, and is never changed. */
  #checkHistory(name: string, before: Item | undefined, after: Item): void {
    const { world } = this;
    const { state, attempt, lostAttempts } = runAttributeNames;
    const [earlier, later] = [storedAttempts(before), storedAttempts(after)];
    const told = JSON.stringify(later);
    if (!told.startsWith(JSON.stringify(earlier).slice(0, -1))) {
      world.fault(`the history of ${name} was ${JSON.stringify(earlier)}, and is ${told}`);
    }
    const numbers = later.map((one) => one.attempt);
    if (numbers.some((number, index) => index > 0 && number <= Number(numbers[index - 1]))) {
      world.fault(`the history of ${name} is out of order: ${told}`);
    }
    const last = later.at(-1);
    const hasFailed = after[state] === "failed" && before?.[state] !== "failed";
    const isLost = Number(after[lostAttempts] ?? 0) > Number(before?.[lostAttempts] ?? 0);
    if (!hasFailed && !isLost) return;
    world.count(hasFailed ? "stored: failed" : "stored: lost");
    const expected = { attempt: before?.[attempt], state: hasFailed ? "failed" : "lost" };
    if (last?.attempt !== expected.attempt || last?.state !== expected.state) {
      world.fault(`the history of ${name} lacks ${JSON.stringify(expected)}: ${told}`);
    }
  }

  #slot(ago: number): string {
    const latest = Math.floor(this.world.clock.now() / this.#slotMs) * this.#slotMs;
    return new Date(latest - ago * this.#slotMs).toISOString();
  }
}

function isOutcome({ values }: { readonly values: object }): boolean {
  return ":state" in values;
}

export const jobRuns: Simulation = {
  name: "job-runs",
  claim:
    "the runs of a job succeed once, are tried by one at a time, no more often than allowed, and can all be run in the end",
  worlds: 300,
  mustHappen: [
    ...states.map((state) => `shown: ${state}`),
    "retry",
    "stored: failed",
    "stored: lost",
    "shown: earlier attempts",
    "success recorded",
    "success confirmed",
    "succeeded in a transaction",
    "skipped",
    ...everyMishap,
    "rejected: LeaseLostError",
    "rejected: SlotDoneError",
    "rejected: RunsExhaustedError",
    "in calm weather: none",
    "in calm weather: LEASE_SLOT_DONE",
    "in calm weather: LEASE_RUNS_EXHAUSTED",
  ],
  mistakes: {
    "a claim of a slot that is done": [
      without({ of: "doneSlot", test: "<" }),
      /was (succeeded|skipped), and is/,
    ],
    "a claim without an attempt left": [
      without({ of: "attempt", test: "<" }),
      /went from the attempt (3 to 4|2 to 3)/,
    ],
    ...staleTakeover,
    "an outcome of another's attempt": [
      without({ of: ["token", "fence"], test: "=", by: isOutcome }),
      /believes to hold|by nobody|tried again after|two callers were told|was skipped, and is|the history of/,
    ],
    "a takeover that stores nothing of the lost attempt": [
      saying(":attempts", "[]", ({ values }) => ":mostAttempts" in values),
      /the history of .* (lacks|was)/,
    ],
  },
  play: stepByStep({ step, mostSteps: 80, make: (world) => new Schedule(world) }),
};
