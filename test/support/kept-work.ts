import { type HoldOptions, type Item, type Lease, LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { expect } from "vitest";
import type { State } from "../../packages/cdk/src/workflow/asl.ts";
import { endedDefinition } from "../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import type { WorkflowTerms } from "../../packages/cdk/src/workflow/workflow-terms.ts";
import { type SeatRecord, seatsIn } from "../../packages/client/src/primitives/seats/seat.ts";
import type { ExecutionDescription } from "../../tools/local/src/state-machines/events.ts";
import { type StateMachineEvent, statusEvent } from "../../tools/local/src/state-machines/events.ts";
import { adminOf } from "./admin.ts";
import { machineArn, StepFunctions, type StepsWorld, workflowTerms } from "./step-functions.ts";

export const leaseDurationMs = 9_000;
/** Between two renewals of a keeper. */
export const beatMs = 3_000;
/** Between two looks of a keeper at its work. */
export const lookMs: number = 5 * beatMs;
export const clockSkewMs = 1_000;
export const key = "import";
export const retentionMs = 604_800_000;

/** What a workflow or another execution holds: the lock of the key, or a permit of its semaphore. */
export type Form = "lock" | "permit";
export const forms: readonly Form[] = ["lock", "permit"];

/** Work of a minute that tells what it was given. */
export const minute: { StartAt: string; States: Record<string, State> } = {
  StartAt: "Minute",
  States: {
    Minute: { Type: "Wait", QueryLanguage: "JSONata", Seconds: 60, Next: "Tell" },
    Tell: {
      Type: "Pass",
      QueryLanguage: "JSONata",
      Output: { given: "{% $states.input %}", lease: "{% $lease %}" },
      End: true,
    },
  },
};
export const quick: typeof minute = {
  StartAt: "Now",
  States: { Now: { Type: "Pass", QueryLanguage: "JSONata", End: true } },
};
/** Work that waits, and gives its input. */
export function waiting(seconds: number): typeof minute {
  const Wait = { Type: "Wait", QueryLanguage: "JSONata", Seconds: seconds, End: true };
  return { StartAt: "Wait", States: { Wait } };
}

/** A part of the description of an execution that failed so. */
export function failed(error: string, cause?: string | RegExp): object {
  return { status: "FAILED", error, ...causedBy(cause) };
}

/** The same of one that was stopped because its lease was lost. */
export function stopped(cause?: string | RegExp): object {
  return { status: "ABORTED", error: "LeaseLostError", ...causedBy(cause) };
}

function causedBy(cause: string | RegExp | undefined): object {
  return cause === undefined ? {} : { cause: cause instanceof RegExp ? expect.stringMatching(cause) : cause };
}

/** A lock or permits, workflows and other work that hold them, and their keepers, on a clock that stands still. */
export class KeptWork {
  readonly clock = new ManualClock();
  readonly steps: StepFunctions;
  readonly client: LeaseClient;
  readonly keeperMachine: string;
  /** Runs for longer than every test. */
  readonly workMachine: string;
  readonly form: Form;
  readonly sortKey: string;
  /** The lease's place, as events have it. */
  readonly place: { readonly key: string; readonly sortKey?: string };
  readonly #ended: string;
  /** What EventBridge delivers of the end of work or of a failed workflow: once, unless a test has it otherwise. */
  deliver: (event: object) => void = (event) => void this.tellEnded(event);

  /** The same, of the end of a keeper that did not succeed. */
  deliverKeepers: (event: object) => void = (event) => void this.tellEnded(event);

  /** @param world what a test wants of Step Functions */
  constructor(form: Form = "lock", world: StepsWorld = {}) {
    this.form = form;
    this.sortKey = form === "lock" ? "lease" : "semaphore";
    this.place = form === "lock" ? { key } : { key, sortKey: this.sortKey };
    this.steps = new StepFunctions(this.clock, (event) => this.#heard(event), world);
    this.client = this.clientOf("holder");
    const terms = { tableName: "leases", retentionMs };
    const keeperArn = this.steps.define("keeper", keeperDefinition(terms));
    this.keeperMachine = keeperArn;
    this.#ended = this.steps.define("ended", endedDefinition({ ...terms, keeperArn }));
    this.workMachine = this.steps.define("work", { QueryLanguage: "JSONata", ...waiting(90_000_000) });
  }

  #heard(event: StateMachineEvent): void {
    if (event.type !== "finished") return;
    const { executionArn, stateMachineArn, status } = event;
    if (stateMachineArn === this.keeperMachine && status !== "SUCCEEDED")
      this.deliverKeepers({ detail: statusEvent(this.describe(executionArn)).detail });
    const isWorkflow = stateMachineArn.startsWith(machineArn("workflow"));
    if (stateMachineArn === this.workMachine || (isWorkflow && status !== "SUCCEEDED"))
      this.deliver({ ...this.place, detail: { executionArn, status } });
  }

  clientOf(owner: string): LeaseClient {
    return new LeaseClient({ store: this.steps.store, clock: this.clock, owner, leaseDurationMs });
  }

  /** The lock, or a semaphore with one permit. */
  of(client: LeaseClient = this.client): Pick<Semaphore, "acquire" | "tryAcquire" | "adopt"> {
    if (this.form === "permit") return new Semaphore(client, key, { permits: 1 });
    return {
      acquire: (options = {}) => client.acquire(key, options),
      tryAcquire: (options = {}) => client.tryAcquire(key, options),
      adopt: (handle) => client.adopt(handle),
    };
  }

  /** Starts work that holds the lease, and a keeper beside it that has begun. */
  async guarded(
    durationMs: number = leaseDurationMs,
  ): Promise<{ lease: Lease; work: string; keeper: string }> {
    const { lease, work } = await this.working({ leaseDurationMs: durationMs });
    const keeper = this.startKeeper({ lease: lease.toJSON(), guarded: work });
    await this.clock.advance(0);
    return { lease, work, keeper };
  }

  /** Starts work that holds the lease. */
  async working(options: Partial<HoldOptions> = {}): Promise<{ lease: Lease; work: string }> {
    const work = this.startWork();
    const lease = await this.of().acquire({ owner: `workflow:${work}`, ...options });
    return { lease, work };
  }

  startWork(input: unknown = {}): string {
    return this.steps.machines.start({ stateMachineArn: this.workMachine, input }).executionArn;
  }

  startKeeper(input: unknown): string {
    return this.steps.machines.start({ stateMachineArn: this.keeperMachine, input }).executionArn;
  }

  tellEnded(event: object): string {
    return this.steps.machines.start({ stateMachineArn: this.#ended, input: event }).executionArn;
  }

  /** Defines a workflow of the form; its work takes a minute, unless the terms have another. */
  define(terms: Partial<WorkflowTerms> = {}): string {
    const permits = this.form === "permit" ? { permits: 1 } : {};
    const all = workflowTerms(minute, { ...permits, ...terms });
    return this.steps.define(`workflow${all.permits ?? ""}`, workflowDefinition(all));
  }

  /** Starts a workflow, and lets it run for a while. */
  async run(stateMachineArn: string, forMs = 0, input: unknown = { key, orders: 7 }): Promise<string> {
    const { executionArn } = this.steps.machines.start({ stateMachineArn, input });
    await this.clock.advance(forMs);
    return executionArn;
  }

  describe(executionArn: string): ExecutionDescription {
    return this.steps.machines.describe(executionArn);
  }

  status(executionArn: string): string {
    return this.describe(executionArn).status;
  }

  /** Every keeper so far. */
  keepers(): ExecutionDescription[] {
    return this.steps.machines.executions(machineArn("keeper"));
  }

  /** The ARNs of the keepers that run. */
  running(): string[] {
    const running = this.keepers().filter(({ status }) => status === "RUNNING");
    return running.map(({ executionArn }) => executionArn);
  }

  /** What the machine of ended executions did so far. */
  ends(): ExecutionDescription[] {
    return this.steps.machines.executions(machineArn("ended"));
  }

  entered(executionArn: string): string[] {
    return this.steps.machines.history(executionArn).entered.map(({ stateName }) => stateName);
  }

  /** The semaphore's item. */
  seats(): Item | undefined {
    return this.steps.store.peek({ pk: key, sk: "semaphore" });
  }

  /** The lease, as the item has it; without a token where it is free. */
  held(): Readonly<Partial<Record<keyof SeatRecord, unknown>>> {
    return (this.form === "lock" ? this.steps.lease(key) : seatsIn(this.seats())[0]) ?? {};
  }

  token(): unknown {
    return this.held().token;
  }

  expiresAt(): number {
    return Number(this.held().expiresAt);
  }

  async breakLease(): Promise<void> {
    await adminOf(this.client).forceRelease(key, { sortKey: this.sortKey, token: String(this.token()) });
  }

  /** Asks the holder to stop. */
  async revoke(reason = "a newer run"): Promise<void> {
    const { sortKey } = this;
    await adminOf(this.client).requestRevocation(key, { sortKey, token: String(this.token()), reason });
  }

  /** Lets time pass beat by beat, and gives the least that was left of the lease. */
  async beats(count: number): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let beat = 0; beat < count; beat += 1) {
      await this.clock.advance(beatMs);
      least = Math.min(least, this.expiresAt() - this.clock.now());
    }
    return least;
  }
}
