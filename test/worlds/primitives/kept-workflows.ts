/**
 * Workflows that hold a lock by a keeper, and other callers of that lock. The state machines are those that the constructs
 * define; Step Functions, EventBridge and the calls between them are as unreliable as chance has it.
 */
import type { Lease, LeaseClient } from "@leasehold/client";
import { attributeNames, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import fc from "fast-check";
import type { Json } from "../../../packages/cdk/src/workflow/asl.ts";
import { endedDefinition } from "../../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../../packages/cdk/src/workflow/keeper-definition.ts";
import { workflowDefinition } from "../../../packages/cdk/src/workflow/workflow-definition.ts";
import { breakLease } from "../../../packages/client/src/admin/statements.ts";
import { StatesError } from "../../../tools/local/src/state-machines/errors.ts";
import type { StateMachineEvent } from "../../../tools/local/src/state-machines/events.ts";
import { StateMachines } from "../../../tools/local/src/state-machines/state-machines.ts";
import { adminOf } from "../../support/admin.ts";
import { isA } from "../../support/lease-writes.ts";
import { workflowTerms } from "../../support/step-functions.ts";
import { type LeaseChange, wakeAt } from "../../support/stream-wakes.ts";
import { Cluster, type Mishap, type Running } from "../cluster.ts";
import { wire } from "../network.ts";
import { drawn, replacing, type Scene, type Simulation, stepByStep, without } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { UnreliableSteps } from "./unreliable-steps.ts";

const processes = 2;
const key = "import";
const leaseDurationMs = 9_000;
/** A workflow takes its lock for so long, until its keeper has started. */
const startLeaseMs = 60_000;
const clockSkewMs = 1_000;
const retentionMs = 604_800_000;
/** A keeper finds out at its next beat, and its calls may each take until the lease ends. */
const noticeMs = 2 * leaseDurationMs;
/** After the last call that has failed, a keeper looks again by then. */
const settleMs = 600_000;
/** For how long a workflow waits for the lock, where it waits. */
const waitMs = 120_000;
/** After a release that the stream tells, a waiter has the lock: the stream's delay, and late answers on its way. */
const wakeMs = 20_000;
type WorkflowStep =
  | { readonly kind: "start" }
  | { readonly kind: "stop" | "redrive"; readonly which: number }
  | { readonly kind: "acquire"; readonly process: number; readonly waitMs: number }
  | { readonly kind: "release"; readonly process: number }
  | { readonly kind: "break" | "revoke" };

const which = fc.nat(20);
const process = fc.nat(processes - 1);
const step: fc.Arbitrary<WorkflowStep | Mishap> = fc.oneof(
  drawn(8, "start", {}),
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("stop" as const, "redrive" as const), which }),
  },
  drawn(4, "acquire", {
    process,
    waitMs: fc.constantFrom(0, 5_000, 20_000),
  }),
  drawn(4, "release", { process }),
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("break" as const, "revoke" as const) }),
  },
  drawn(8, "wait", { ms: fc.integer({ min: 1, max: 12_000 }) }),
  // No time in which all stands still: Step Functions does not.
  drawn(2, "freeze", {
    process,
    ms: fc.integer({ min: 1, max: 15_000 }),
  }),
  drawn(1, "kill", { process }),
  drawn(1, "collect", {}),
);

/** One task of the work, which proves nothing by itself: the lease is to protect it. */
function task(name: string, more: Record<string, Json>): Record<string, Json> {
  return {
    Type: "Task",
    QueryLanguage: "JSONata",
    Resource: `arn:aws:states:::work:${name}`,
    Arguments: {
      execution: "{% $states.context.Execution.Id %}",
      token: "{% $lease.token %}",
      fence: "{% $lease.fencingToken %}",
    },
    ...more,
  };
}

const work: Json = {
  StartAt: "First",
  States: {
    First: task("first", { Next: "Second" }),
    Second: task("second", { Next: "Rest" }),
    Rest: { Type: "Wait", QueryLanguage: "JSONata", Seconds: 5, Next: "Third" },
    Third: task("third", { End: true }),
  },
};

interface Sent {
  readonly execution: string;
  readonly token: string;
  readonly fence: number;
}

interface Rival {
  readonly client: LeaseClient;
  lease: Lease | undefined;
}

class KeptWorkflows implements Scene<WorkflowStep> {
  readonly world: Cluster<Rival>;
  readonly #steps: UnreliableSteps;
  readonly #workflow: string;
  readonly #ended: string;
  readonly #executions: string[] = [];
  /** The tasks that are under way, by their execution. */
  readonly #working = new Map<string, Sent>();
  /** When an operator broke leases, by their tokens, on the world's clock. */
  readonly #broken = new Map<string, number>();
  /** Whether workflows wait for a lock that is held, and are woken by the table's stream. */
  readonly #waits: boolean;
  /** When executions were started, on the world's clock. */
  readonly #startedAt = new Map<string, number>();
  /** Counts the times in which the lock was free, or in which an execution was stopped that may have been woken. */
  #times = 0;
  #events = 0;

  constructor(world: World) {
    this.#waits = world.random.chance(0.5);
    this.world = new Cluster<Rival>(world, {
      processes,
      begin: (client) => ({ client, lease: undefined }),
      client: () => ({ leaseDurationMs, clockSkewMs, retentionMs }),
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_UNAVAILABLE", "LEASE_LOST"],
    });
    const { table } = this.world;
    this.#steps = new UnreliableSteps(
      world,
      { updateNow: (request) => table.update(wire.tamper(request)), peek: (at) => table.peek(at) },
      (event) => this.#heard(event),
      world.random.pick([0, 0, 60, 250]),
    );
    this.#steps.trouble = world.random.pick([0, 0.05, 0.15]);
    this.#steps.staleMs = world.random.pick([0, 900]);
    this.#steps.isPrompt = this.#waits && world.random.chance(0.5);
    const terms = { tableName: "leases", retentionMs };
    const keeperArn = this.#steps.define("keeper", keeperDefinition(terms));
    this.#ended = this.#steps.define("ended", endedDefinition({ ...terms, keeperArn }));
    const held = this.#waits ? ({ whenHeld: "wait", waitMs } as const) : ({ whenHeld: "fail" } as const);
    const parts = { keeperArn, leaseDurationMs, clockSkewMs, retentionMs, ...held };
    this.#workflow = this.#steps.define("workflow", workflowDefinition(workflowTerms(work, parts)));
    for (const name of ["first", "second", "third"])
      this.#steps.resources.set(`work:${name}`, (sent: Sent) => this.#work(name, sent));
  }

  take(one: WorkflowStep): void {
    if (one.kind === "start") this.#start();
    else if (one.kind === "acquire") this.#acquire(one.process, one.waitMs);
    else if (one.kind === "release") this.#release(one.process);
    else if (one.kind === "stop" || one.kind === "redrive") this.#touch(one.kind, one.which);
    else this.#operate(one.kind);
  }

  /** When nothing fails any more, every workflow comes to its end, no keeper goes on, and the lock is free. */
  async end(): Promise<void> {
    const { world } = this;
    this.#steps.trouble = 0;
    world.killAll();
    await world.clearUp();
    await world.clock.advance(settleMs);
    world.world.check();
    for (const name of ["workflow", "keeper", "ended"]) {
      const machine = this.#workflow.replace(/workflow$/, name);
      const running = this.#steps.machines.executions(machine).filter(({ status }) => status === "RUNNING");
      if (running.length > 0) world.fault(`${running.length} executions of ${name} never end`);
    }
    const item = this.#steps.lease(key);
    const owner = String(item?.[attributeNames.owner]);
    // One that was stopped before it had a keeper leaves its lease to expire.
    const isKept = Number(item?.[attributeNames.expiresAt]) > world.clock.now();
    if (isKept && owner.startsWith("workflow:")) world.fault(`${owner} has ended, and its lease is kept`);
    const lease = world.at(0).parts.client.acquire(key, { waitMs: 2 * startLeaseMs });
    let isFree = false;
    lease.then(
      () => {
        isFree = true;
      },
      (error: Error) => world.world.tell("newcomer", error.message),
    );
    await world.clock.advance(3 * startLeaseMs);
    if (!isFree) world.fault("the lock is stuck");
  }

  #start(): void {
    const name = `w${this.#executions.length}`;
    const { machines } = this.#steps;
    const { executionArn } = machines.start({ stateMachineArn: this.#workflow, name, input: { key } });
    this.#executions.push(executionArn);
    this.#startedAt.set(executionArn, this.world.clock.monotonic());
    this.world.count("started");
  }

  #touch(action: "stop" | "redrive", index: number): void {
    const { machines } = this.#steps;
    const statuses = action === "stop" ? ["RUNNING"] : ["FAILED", "ABORTED"];
    const all = this.#executions.filter((arn) => statuses.includes(machines.describe(arn).status));
    const arn = all[index % Math.max(1, all.length)];
    if (arn === undefined) return;
    this.#times += 1;
    machines[action](arn);
    this.world.count(action);
  }

  #acquire(index: number, waitMs: number): void {
    const running = this.world.at(index);
    if (running.parts.lease?.held) return;
    const call = running.parts.client.acquire(key, { waitMs, heartbeat: true });
    this.world.watch(running, call, (lease) => this.#granted(running, lease));
  }

  #granted(running: Running<Rival>, lease: Lease): void {
    running.parts.lease = lease;
    this.world.beliefs.add(running.process, lease, leaseItemKey(key));
    this.world.count("a rival holds it");
  }

  #release(index: number): void {
    const running = this.world.at(index);
    const { lease } = running.parts;
    if (lease === undefined) return;
    running.parts.lease = undefined;
    this.world.watch(running, lease.release());
  }

  /** An operator breaks the lease of a workflow, or asks it to stop. */
  #operate(action: "break" | "revoke"): void {
    const { world } = this;
    const item = this.#steps.lease(key);
    const token = item?.[attributeNames.token];
    if (token === undefined || !String(item?.[attributeNames.owner]).startsWith("workflow:")) return;
    if (action === "break") {
      this.#broken.set(String(token), world.clock.monotonic());
      world.table.update(breakLease({ key }, String(token), world.clock.now()).request());
    } else {
      const running = world.at(0);
      const call = adminOf(running.parts.client).requestRevocation(key, { token: String(token) });
      world.watch(running, call);
    }
    world.count(action);
  }

  /** A task of the work: it takes a while, and fails now and then. */
  async #work(name: string, sent: Sent): Promise<object> {
    const { world } = this;
    const { random } = world;
    const { execution, token } = sent;
    const item = this.#steps.lease(key);
    const stands = item?.[attributeNames.token] === token && item[attributeNames.fence] === sent.fence;
    if (!stands && !this.#wasJustBroken(token))
      world.fault(`${nameOf(execution)} sends its ${name} task without its lease`);
    this.#working.set(execution, sent);
    world.count("worked");
    await new Promise<void>((resolve) => world.clock.schedule(resolve, random.between(100, 12_000)));
    if (this.#working.get(execution) === sent) this.#working.delete(execution);
    if (random.chance(0.08)) throw new StatesError("OutOfStock", "no mugs");
    return {};
  }

  /** For a while, work goes on whose lease was broken: until its keeper finds out. */
  #wasJustBroken(token: string): boolean {
    const at = this.#broken.get(token);
    return at !== undefined && this.world.clock.monotonic() - at < noticeMs;
  }

  /** The table's stream tells that the lock was let go: at once, late, twice, or, where calls fail, never. */
  #tellStream(change: LeaseChange): void {
    const { world, clock, table } = this.world;
    const { isPrompt, machines } = this.#steps;
    const delays = world.random.pick([
      [0],
      [world.random.between(1, 3_000)],
      [0, 2_000],
      ...(isPrompt ? [] : [[]]),
    ]);
    if (delays.length === 0) world.count("a wake-up is lost");
    const memory = {
      queryNow: (request: Parameters<typeof table.query>[0]) => table.query(request, () => 0),
      peek: (at: Parameters<typeof table.peek>[0]) => table.peek(at),
      transactNow: (entries: Parameters<typeof table.transact>[0]) => table.transact(entries),
    };
    const wake = (waiter: object): boolean => {
      if (!("taskToken" in waiter)) return false;
      try {
        machines.sendTaskSuccess(String(waiter.taskToken), { key });
        world.count("woken");
        return true;
      } catch (error) {
        // Its time was over, or it was stopped.
        if (error instanceof StatesError) return false;
        throw error;
      }
    };
    for (const delayMs of delays) clock.schedule(() => void wakeAt(memory, [change], wake), delayMs);
    if (!isPrompt) return;
    const time = this.#times;
    clock.schedule(() => {
      const parked = this.#executions.find((arn) => this.#isParked(arn));
      if (this.#times === time && parked !== undefined)
        world.fault(`${nameOf(parked)} waits for a lock that is free`);
    }, wakeMs);
  }

  #isParked(execution: string): boolean {
    const { machines } = this.#steps;
    if (machines.describe(execution).status !== "RUNNING") return false;
    return machines.history(execution).entered.at(-1)?.stateName === "Leasehold_Park";
  }

  #heard(event: StateMachineEvent): void {
    const { world, clock } = this.world;
    const { executionArn, stateMachineArn } = event;
    if (event.type === "redriven") this.world.count("redriven");
    if (event.type !== "finished" || stateMachineArn !== this.#workflow) return;
    this.#working.delete(executionArn);
    this.#judgeWait(executionArn);
    world.tell(nameOf(executionArn), event.status);
    world.count(`workflow: ${event.status}`);
    // EventBridge delivers an event once, late, twice, or never.
    const delays = world.random.pick([[0], [0], [world.random.between(1, 30_000)], [0, 5_000], []]);
    for (const delayMs of delays) {
      this.#events += 1;
      const name = `e${this.#events}`;
      const input = { key, detail: { executionArn, status: event.status } };
      clock.schedule(() => {
        this.#steps.machines.start({ stateMachineArn: this.#ended, name, input });
      }, delayMs);
    }
    if (delays.length === 0) world.count("an event is lost");
  }

  /** A workflow that waits gives up when its time is over, and not before. */
  #judgeWait(execution: string): void {
    const { error } = this.#steps.machines.describe(execution);
    if (!this.#waits || error !== "LeaseUnavailableError") return;
    const waitedMs = this.world.clock.monotonic() - (this.#startedAt.get(execution) ?? 0);
    this.world.count("waited in vain");
    if (waitedMs < waitMs - 1) this.world.fault(`${nameOf(execution)} gives up after ${waitedMs} ms`);
  }

  /** A grant to another while the work of one goes on, which nobody has broken. */
  #changed(changes: readonly Change[]): void {
    for (const { key: place, before, after } of changes) {
      const token = after?.[attributeNames.token];
      if (place.sk !== leaseSortKey) continue;
      if (token !== before?.[attributeNames.token]) this.#times += 1;
      if (this.#waits && token === undefined && before?.[attributeNames.token] !== undefined)
        this.#tellStream({ before, after });
      if (token === undefined || token === before?.[attributeNames.token]) continue;
      const owner = String(after?.[attributeNames.owner]);
      for (const [execution, working] of this.#working) {
        if (working.token === token || this.#wasJustBroken(working.token)) continue;
        this.world.fault(`${nameOf(execution)} works, and ${owner} has got the lock`);
      }
    }
  }
}

function nameOf(executionArn: string): string {
  return executionArn.slice(executionArn.lastIndexOf(":") + 1);
}

export const keptWorkflows: Simulation = {
  name: "kept-workflows",
  claim:
    "workflows work only under their leases, are woken when a lock is let go, and all come to an end with their keepers",
  worlds: 100,
  mustHappen: [
    "a rival holds it",
    "a wake-up is lost",
    "an event is lost",
    "answer lost",
    "break",
    "call: answer late",
    "call: answer lost",
    "call: cut off",
    "call: refused",
    "death",
    "redriven",
    "revoke",
    "takeover",
    "waited in vain",
    "woken",
    "worked",
    "workflow: ABORTED",
    "workflow: FAILED",
    "workflow: SUCCEEDED",
  ],
  mistakes: {
    "a keeper that cannot stop its work": [
      replacing(StateMachines.prototype, "stop", () => ({ stopDate: "" })),
      /works, and|without its lease/,
    ],
    "a release of whatever lease there is": [
      without({ of: ["token", "fence"], by: isA("end") }),
      /works, and|without its lease|believes to hold/,
    ],
    "a wake-up that no waiter hears": [
      replacing(StateMachines.prototype, "sendTaskSuccess", (send, [token, output]) => {
        const isWake = typeof output === "object" && output !== null && "key" in output;
        if (!isWake) send(token, output);
      }),
      /waits for a lock that is free/,
    ],
  },
  play: stepByStep({ step, fewestSteps: 20, mostSteps: 50, make: (world) => new KeptWorkflows(world) }),
};
