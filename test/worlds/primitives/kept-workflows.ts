/**
 * Workflows that hold a lock by a keeper, and other callers of that lock. The state machines are those that the constructs
 * define; Step Functions, EventBridge and the calls between them are as unreliable as chance has it.
 */
import { type Lease, type LeaseClient, LeaseError, type UpdateRequest } from "@leasehold/client";
import { attributeNames, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import fc from "fast-check";
import type { Definition, Json, State } from "../../../packages/cdk/src/workflow/asl.ts";
import { endedDefinition } from "../../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../../packages/cdk/src/workflow/keeper-definition.ts";
import { redriveGuardDefinition } from "../../../packages/cdk/src/workflow/redrive-guard.ts";
import { redrivenCause } from "../../../packages/cdk/src/workflow/redrive-refusal.ts";
import { workflowDefinition } from "../../../packages/cdk/src/workflow/workflow-definition.ts";
import { breakLease } from "../../../packages/client/src/admin/statements.ts";
import { StatesError } from "../../../tools/local/src/state-machines/errors.ts";
import { type StateMachineEvent, statusEvent } from "../../../tools/local/src/state-machines/events.ts";
import { StateMachines } from "../../../tools/local/src/state-machines/state-machines.ts";
import { adminOf } from "../../support/admin.ts";
import { kindOf } from "../../support/lease-writes.ts";
import { workflowTerms } from "../../support/step-functions.ts";
import { type LeaseChange, wakeAt } from "../../support/stream-wakes.ts";
import { Beliefs } from "../beliefs.ts";
import { Cluster, type Mishap, type Running } from "../cluster.ts";
import type { Tamper } from "../network.ts";
import { drawn, replacing, type Simulation, stepByStep, withoutTests } from "../simulation.ts";
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
/** A keeper whose looks were refused looks again after 16 times its usual five beats, and its calls may have failed before. */
const settleMs = 600_000;
/** For how long a workflow waits for the lock, where it waits. */
const waitMs = 120_000;
/** After a release that the stream tells, a waiter has the lock: the stream's delay, and late answers on its way. */
const wakeMs = 20_000;
/** EventBridge tells a redrive after so long at most, and the guard then stops the execution. */
const guardMs = 5_500;

/** What the workflows of one situation do that others do not. */
interface Situation {
  /** Whether they wait for a lock that is held, and are woken by the table's stream. @default false */
  readonly waits?: boolean;
  /** Whether the guard has to stop their tasks when they are redriven, but for the first. @default false */
  readonly isGuarded?: boolean;
}

export type WorkflowStep =
  | Mishap
  | { readonly kind: "start" }
  | { readonly kind: "stop"; readonly which: number }
  | { readonly kind: "redrive"; readonly which: number }
  | { readonly kind: "abort keeper"; readonly which: number }
  | { readonly kind: "throttle"; readonly ms: number }
  | { readonly kind: "acquire"; readonly process: number; readonly waitMs: number }
  | { readonly kind: "release"; readonly process: number }
  | { readonly kind: "break" }
  | { readonly kind: "revoke" };

const which = fc.nat(20);
const process = fc.nat(processes - 1);
const step: fc.Arbitrary<WorkflowStep> = fc.oneof(
  drawn(8, "start", {}),
  {
    weight: 3,
    arbitrary: fc.oneof(
      fc.record({ kind: fc.constant("stop" as const), which }),
      fc.record({ kind: fc.constant("redrive" as const), which }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.oneof(
      fc.record({ kind: fc.constant("abort keeper" as const), which }),
      fc.record({ kind: fc.constant("throttle" as const), ms: fc.integer({ min: 10_000, max: 300_000 }) }),
    ),
  },
  drawn(4, "acquire", {
    process,
    waitMs: fc.constantFrom(0, 5_000, 20_000),
  }),
  drawn(4, "release", { process }),
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ kind: fc.constant("break" as const) }),
      fc.record({ kind: fc.constant("revoke" as const) }),
    ),
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

/**
 * The definition with tasks after the first that do not refuse a redrive, as tasks in JSONPath: the interpreter knows none,
 * so it is the refusal that goes, which is in their timeouts.
 */
function withoutRefusals(definition: Definition): Definition {
  const around = definition.States.Leasehold_Work as State;
  const [graph] = around.Branches as unknown as readonly Pick<Definition, "States">[];
  const States = Object.entries(graph?.States ?? {}).map(([name, { TimeoutSeconds, ...state }]) => {
    const isRefusing = name === "First" && TimeoutSeconds !== undefined;
    return [name, isRefusing ? { ...state, TimeoutSeconds } : state];
  });
  const Branches = [{ ...graph, States: Object.fromEntries(States) }];
  return { ...definition, States: { ...definition.States, Leasehold_Work: { ...around, Branches } } };
}

interface Sent {
  readonly execution: string;
  readonly token: string;
  readonly fence: number;
}

interface Rival {
  readonly client: LeaseClient;
  lease: Lease | undefined;
}

export class KeptWorkflows {
  readonly world: Cluster<Rival>;
  readonly #steps: UnreliableSteps;
  readonly #workflow: string;
  readonly #ended: string;
  readonly #beliefs: Beliefs;
  readonly #executions: string[] = [];
  /** The tasks that are under way, by their execution. */
  readonly #working = new Map<string, Sent>();
  /** When an operator broke leases, by their tokens, on the world's clock. */
  readonly #broken = new Map<string, number>();
  readonly #situation: Situation;
  readonly #guard: string;
  /** When executions were started, and when they were redriven last, on the world's clock. */
  readonly #startedAt = new Map<string, number>();
  readonly #redrivenAt = new Map<string, number>();
  /** Counts the times in which the lock was free, or in which an execution was stopped that may have been woken. */
  #times = 0;
  /** Leases whose keeper was aborted, by their tokens: until when their work may go on without one. */
  readonly #unkept = new Map<string, number>();
  /** By token, the aborted keepers of which nobody has heard yet. */
  readonly #unheard = new Map<string, Set<string>>();
  /** The last lease of each execution. */
  readonly #tokens = new Map<string, string>();
  /** What may be stopped: executions that were redriven, tokens of holders that were asked to stop or lost their keeper. */
  readonly #mayStop = new Set<string>();
  readonly #keeper: string;
  #events = 0;

  constructor(world: World, tamper?: Tamper, situation: Situation = {}) {
    this.#situation = situation;
    this.world = new Cluster<Rival>(world, {
      processes,
      begin: (client) => ({ client, lease: undefined }),
      client: () => ({ leaseDurationMs, clockSkewMs, retentionMs }),
      onChange: (changes) => this.#changed(changes),
    });
    const { table } = this.world;
    const tampered = (request: UpdateRequest): UpdateRequest => tamper?.(request) ?? request;
    this.#steps = new UnreliableSteps(
      world,
      { updateNow: (request) => table.update(tampered(request)), peek: (at) => table.peek(at) },
      (event) => this.#heard(event),
      world.random.pick([0, 0, 60, 250]),
    );
    this.#steps.trouble = world.random.pick([0, 0.05, 0.15]);
    this.#steps.staleMs = world.random.pick([0, 900]);
    this.#steps.isPrompt = situation.waits === true && world.random.chance(0.5);
    const terms = { tableName: "leases", retentionMs };
    this.#keeper = this.#steps.define("keeper", keeperDefinition(terms));
    const keeperArn = this.#keeper;
    this.#ended = this.#steps.define("ended", endedDefinition({ ...terms, keeperArn }));
    this.#guard = this.#steps.define("guard", redriveGuardDefinition());
    const held = situation.waits ? ({ whenHeld: "wait", waitMs } as const) : ({ whenHeld: "fail" } as const);
    const parts = { keeperArn, leaseDurationMs, clockSkewMs, retentionMs, ...held };
    const definition = workflowDefinition(workflowTerms(work, parts));
    this.#workflow = this.#steps.define(
      "workflow",
      situation.isGuarded ? withoutRefusals(definition) : definition,
    );
    for (const name of ["first", "second", "third"])
      this.#steps.resources.set(`work:${name}`, (sent: Sent) => this.#work(name, sent));
    this.#beliefs = new Beliefs(this.world);
  }

  async take(one: WorkflowStep): Promise<void> {
    const { world } = this;
    if (one.kind === "start") this.#start();
    else if (one.kind === "stop" || one.kind === "redrive") this.#touch(one.kind, one.which);
    else if (one.kind === "abort keeper") this.#abortKeeper(one.which);
    else if (one.kind === "throttle") this.#steps.throttledUntil = world.clock.monotonic() + one.ms;
    else if (one.kind === "acquire") this.#acquire(one.process, one.waitMs);
    else if (one.kind === "release") this.#release(one.process);
    else if (one.kind === "break" || one.kind === "revoke") this.#operate(one.kind);
    else await world.befall(one);
    await world.clock.advance(0);
  }

  /** When nothing fails any more, every workflow comes to its end, no keeper goes on, and the lock is free. */
  async expectAllToEnd(): Promise<void> {
    const { world } = this;
    if (this.#steps.trouble > 0) this.#steps.calmSince = world.clock.monotonic();
    this.#steps.trouble = 0;
    this.#steps.throttledUntil = 0;
    world.killAll();
    await world.clearUp();
    await world.clock.advance(settleMs);
    world.world.check();
    for (const name of ["workflow", "keeper", "ended", "guard"]) {
      const machine = this.#workflow.replace(/workflow$/, name);
      const running = this.#steps.machines.executions(machine).filter(({ status }) => status === "RUNNING");
      if (running.length > 0) world.fault(`${running.length} executions of ${name} never end`);
    }
    const item = this.#steps.lease(key);
    const owner = String(item?.[attributeNames.owner]);
    // One that was stopped before it had a keeper leaves its lease to expire.
    const isKept = Number(item?.[attributeNames.expiresAt]) > world.clock.now();
    if (isKept && owner.startsWith("workflow:")) world.fault(`${owner} has ended, and its lease is kept`);
    const [newcomer] = world.processes;
    const lease = newcomer?.parts.client.acquire(key, { waitMs: 2 * startLeaseMs });
    let isFree = false;
    lease?.then(
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
    if (action === "redrive") this.#mayStop.add(arn);
    machines[action](arn);
    this.world.count(action);
  }

  /** By hand, in the console: its work goes on. */
  #abortKeeper(index: number): void {
    const { machines } = this.#steps;
    const running = machines.executions(this.#keeper).filter(({ status }) => status === "RUNNING");
    const keeper = running[index % Math.max(1, running.length)];
    if (keeper === undefined) return;
    machines.stop(keeper.executionArn);
    this.world.count("a keeper is aborted");
  }

  /** The event of an aborted keeper is delivered once, twice or late; one that is lost is beyond what is promised. */
  #replace(executionArn: string): void {
    const { world, clock } = this.world;
    const described = this.#steps.machines.describe(executionArn);
    const { lease } = described.input as { readonly lease: { readonly token: string } };
    const delays = world.random.pick([[0], [0], [0, 5_000], [world.random.between(1, 30_000)]]);
    const isPrompt = delays[0] === 0 && this.#steps.trouble === 0;
    // Until it has been told, and what hears of it has come through, nobody keeps the lease.
    const unheard = this.#unheard.get(lease.token) ?? new Set();
    if (!isPrompt) this.#unheard.set(lease.token, unheard.add(executionArn));
    if (!isPrompt) this.#mayStop.add(lease.token);
    const { detail } = statusEvent(described);
    for (const delayMs of delays) {
      this.#events += 1;
      const name = `e${this.#events}`;
      clock.schedule(() => {
        const started = this.#steps.machines.start({
          stateMachineArn: this.#ended,
          name,
          input: { detail },
        });
        void this.#steps.machines.finished(started.executionArn).then(({ status }) => {
          if (status !== "SUCCEEDED" || isPrompt) return;
          unheard.delete(executionArn);
          this.#unkept.set(lease.token, clock.monotonic() + noticeMs);
        });
      }, delayMs);
    }
  }

  #acquire(index: number, waitMs: number): void {
    const running = this.world.processes[index];
    if (running === undefined || running.parts.lease?.held) return;
    const call = running.parts.client.acquire(key, { waitMs, heartbeat: true });
    this.world.watch(running, call, (lease) => this.#granted(running, lease), isExpected);
  }

  #granted(running: Running<Rival>, lease: Lease): void {
    running.parts.lease = lease;
    this.#beliefs.add(running.process, lease, leaseItemKey(key));
    this.world.count("a rival holds it");
  }

  #release(index: number): void {
    const running = this.world.processes[index];
    const lease = running?.parts.lease;
    if (running === undefined || lease === undefined) return;
    running.parts.lease = undefined;
    this.world.watch(running, lease.release(), () => undefined, isExpected);
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
      const [running] = world.processes;
      if (running === undefined) return;
      this.#mayStop.add(String(token));
      const call = adminOf(running.parts.client).requestRevocation(key, { token: String(token) });
      world.watch(running, call, () => undefined, isExpected);
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
    // Work may go on without a keeper for a while, and not begin so.
    const isExcused =
      this.#wasBroken(token) ||
      (name !== "first" && (this.#isUnkept(token) || this.#wasJustRedriven(execution)));
    if (!stands && !isExcused) world.fault(`${nameOf(execution)} sends its ${name} task without its lease`);
    this.#working.set(execution, sent);
    world.count("worked");
    await new Promise<void>((resolve) => world.clock.schedule(resolve, random.between(100, 12_000)));
    if (this.#working.get(execution) === sent) this.#working.delete(execution);
    if (random.chance(0.08)) throw new StatesError("OutOfStock", "no mugs");
    return {};
  }

  /** For a while, work goes on whose lease was broken, or which has no keeper: until its keeper finds out. */
  #wasJustBroken(token: string): boolean {
    return this.#isUnkept(token) || this.#wasBroken(token);
  }

  #isUnkept(token: string): boolean {
    const isUnheard = (this.#unheard.get(token)?.size ?? 0) > 0;
    return isUnheard || this.world.clock.monotonic() < (this.#unkept.get(token) ?? 0);
  }

  #wasBroken(token: string): boolean {
    const at = this.#broken.get(token);
    return at !== undefined && this.world.clock.monotonic() - at < noticeMs;
  }

  /** Where a guard stops what was redriven, its other tasks may be sent until then. */
  #wasJustRedriven(execution: string): boolean {
    const at = this.#redrivenAt.get(execution);
    return (
      this.#situation.isGuarded === true && at !== undefined && this.world.clock.monotonic() - at < guardMs
    );
  }

  /** EventBridge tells the guard of a redrive, at once or late, and perhaps twice. */
  #tellGuard(execution: string): void {
    const { world, clock } = this.world;
    const redrivenAt = clock.monotonic();
    this.#redrivenAt.set(execution, redrivenAt);
    if (!this.#situation.isGuarded) return;
    for (const delayMs of world.random.pick([[0], [0], [world.random.between(1, 5_000)], [0, 5_000]])) {
      this.#events += 1;
      const name = `g${this.#events}`;
      clock.schedule(() => {
        this.#steps.machines.start({ stateMachineArn: this.#guard, name, input: { execution } });
      }, delayMs);
    }
    clock.schedule(() => {
      const isSame = this.#redrivenAt.get(execution) === redrivenAt;
      if (isSame && this.#steps.machines.describe(execution).status === "RUNNING")
        world.fault(`${nameOf(execution)} goes on after its redrive`);
    }, guardMs);
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
    if (event.type === "redriven") this.#tellGuard(executionArn);
    if (event.type === "finished" && stateMachineArn === this.#keeper && event.status === "ABORTED")
      this.#replace(executionArn);
    if (event.type === "finished" && stateMachineArn === this.#keeper)
      this.#expectNoFalseAlarm(executionArn, event.error);
    if (event.type !== "finished" || stateMachineArn !== this.#workflow) return;
    this.#working.delete(executionArn);
    this.#judgeWait(executionArn);
    world.tell(nameOf(executionArn), event.status);
    world.count(`workflow: ${event.status}`);
    this.#expectReason(executionArn, event);
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
    if (!this.#situation.waits || error !== "LeaseUnavailableError") return;
    const waitedMs = this.world.clock.monotonic() - (this.#startedAt.get(execution) ?? 0);
    this.world.count("waited in vain");
    if (waitedMs < waitMs - 1) this.world.fault(`${nameOf(execution)} gives up after ${waitedMs} ms`);
  }

  /** While no call fails but looks that are throttled, no keeper stops work without a reason. */
  #expectReason(executionArn: string, event: { readonly status: string; readonly error?: string }): void {
    if (event.status !== "ABORTED" || event.error !== "LeaseLostError") return;
    const { trouble, calmSince } = this.#steps;
    // A call that has failed before is still the reason while its lease lasts.
    if (trouble > 0 || this.world.clock.monotonic() < calmSince + noticeMs) return;
    const token = this.#tokens.get(executionArn) ?? "";
    if (this.#mayStop.has(executionArn) || this.#mayStop.has(token) || this.#broken.has(token)) return;
    this.world.fault(`${nameOf(executionArn)} is healthy, and was stopped`);
  }

  /**
   * While no call fails, the keeper of work that has succeeded tells of no loss. One that may not look, for looks are
   * throttled, cannot know of the success.
   */
  #expectNoFalseAlarm(executionArn: string, error: string | undefined): void {
    const { machines, trouble, calmSince, throttledUntil } = this.#steps;
    if (error !== "LeaseLostError" || trouble > 0 || calmSince > 0) return;
    if (this.world.clock.monotonic() < throttledUntil + noticeMs) return;
    const { guarded } = machines.describe(executionArn).input as { readonly guarded: string };
    if (machines.describe(guarded).status !== "SUCCEEDED") return;
    this.world.fault(`${nameOf(guarded)} has succeeded, and its keeper tells that its lease was lost`);
  }

  /** A grant to another while the work of one goes on, which nobody has broken. */
  #changed(changes: readonly Change[]): void {
    for (const { key: place, before, after } of changes) {
      const token = after?.[attributeNames.token];
      if (place.sk !== leaseSortKey) continue;
      if (token !== before?.[attributeNames.token]) this.#times += 1;
      if (this.#situation.waits && token === undefined && before?.[attributeNames.token] !== undefined)
        this.#tellStream({ before, after });
      if (token === undefined || token === before?.[attributeNames.token]) continue;
      const owner = String(after?.[attributeNames.owner]);
      if (owner.startsWith("workflow:")) this.#tokens.set(owner.slice("workflow:".length), String(token));
      for (const [execution, working] of this.#working) {
        if (working.token === token || this.#wasJustBroken(working.token)) continue;
        if (this.#wasJustRedriven(execution)) continue;
        this.world.fault(`${nameOf(execution)} works, and ${owner} has got the lock`);
      }
    }
  }
}

function nameOf(executionArn: string): string {
  return executionArn.slice(executionArn.lastIndexOf(":") + 1);
}

const expectedCodes = [
  "LEASE_UNAVAILABLE",
  "LEASE_NO_ANSWER",
  "LEASE_LOST",
  "LEASE_CONFLICT",
  "LEASE_THROTTLED",
];

function isExpected(error: unknown): boolean {
  return error instanceof LeaseError && expectedCodes.includes(error.code);
}

/** The lock's proof is left out of the writes of a kind that the state machines send. */
function unproven(kind: ReturnType<typeof kindOf>): Tamper {
  return withoutTests(
    ({ attribute, write }) => kindOf(write) === kind && ["token", "fence"].includes(attribute),
  );
}

const play = (situation: Situation): Simulation["play"] =>
  stepByStep({
    step,
    fewestSteps: 20,
    mostSteps: 50,
    make: (world, tamper) => new KeptWorkflows(world, tamper, situation),
    end: (scene) => scene.expectAllToEnd(),
  });

export const keptWorkflows: Simulation = {
  name: "kept-workflows",
  claim:
    "workflows work only under their leases, which their keepers renew, release or give up in time, and all come to an end",
  worlds: 60,
  mustHappen: [
    "a keeper is aborted",
    "a look is throttled",
    "a rival holds it",
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
    "worked",
    "workflow: ABORTED",
    "workflow: FAILED",
    "workflow: SUCCEEDED",
  ],
  mistakes: [
    {
      what: "a keeper that cannot stop its work",
      plant: replacing(StateMachines.prototype, "stop", () => () => ({ stopDate: "" })),
      violation: /works, and|without its lease/,
    },
    {
      what: "a release of whatever lease there is",
      tamper: unproven("end"),
      violation: /works, and|without its lease|believes to hold/,
    },
  ],
  play: play({}),
};

/** Waiters that are parked at the lock's item. */
export const waitingWorkflows: Simulation = {
  name: "kept-workflows:waiting",
  claim: "workflows that wait for the lock are woken when it is let go, and wait for as long as they may",
  worlds: 60,
  mustHappen: [
    "a rival holds it",
    "a wake-up is lost",
    "break",
    "call: answer late",
    "call: answer lost",
    "redriven",
    "takeover",
    "waited in vain",
    "woken",
    "worked",
    "workflow: ABORTED",
    "workflow: FAILED",
    "workflow: SUCCEEDED",
  ],
  mistakes: [
    {
      what: "a wake-up that no waiter hears",
      plant: replacing(
        StateMachines.prototype,
        "sendTaskSuccess",
        (original) =>
          function (this: StateMachines, token, output) {
            const isWake = typeof output === "object" && output !== null && "key" in output;
            if (!isWake) original.call(this, token, output);
          },
      ),
      violation: /waits for a lock that is free/,
    },
  ],
  play: play({ waits: true }),
};

/** Tasks that cannot refuse to be redriven. */
export const guardedWorkflows: Simulation = {
  name: "kept-workflows:guarded",
  claim: "workflows whose tasks cannot refuse a redrive are stopped as soon as EventBridge tells of it",
  worlds: 60,
  mustHappen: ["a rival holds it", "call: cut off", "redrive", "redriven", "takeover", "worked"],
  mistakes: [
    {
      what: "a guard that stops nothing",
      plant: replacing(
        StateMachines.prototype,
        "stop",
        (original) =>
          function (this: StateMachines, arn, reason) {
            if (reason?.cause === redrivenCause) return { stopDate: "" };
            return original.call(this, arn, reason);
          },
      ),
      violation: /goes on after its redrive|works, and|without its lease/,
    },
  ],
  play: play({ isGuarded: true }),
};
