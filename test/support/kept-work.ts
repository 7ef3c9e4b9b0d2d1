import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { endedDefinition } from "../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import type { ExecutionDescription } from "../../tools/local/src/state-machines/events.ts";
import { type StateMachineEvent, statusEvent } from "../../tools/local/src/state-machines/events.ts";
import { machineArn, StepFunctions } from "./step-functions.ts";

export const leaseDurationMs = 9_000;
/** Between two renewals of a keeper. */
export const beatMs = 3_000;
/** Between two looks of a keeper at its work. */
export const lookMs: number = 5 * beatMs;
export const key = "import";

const terms = { tableName: "leases", retentionMs: 604_800_000 };

/** A lock, work that holds it, and the work's keeper, on a clock that stands still. */
export class KeptWork {
  readonly clock = new ManualClock();
  readonly steps: StepFunctions;
  readonly client: LeaseClient;
  readonly keeperMachine: string;
  /** Runs for longer than every test. */
  readonly workMachine: string;
  readonly #ended: string;
  /** What EventBridge delivers of an event: once, unless a test has it otherwise. */
  deliver: (event: object) => void = (event) => void this.tellEnded(event);

  /** The same, of the end of a keeper that did not succeed. */
  deliverKeepers: (event: object) => void = (event) => void this.tellEnded(event);

  /** @param random what chance gives the state machines */
  constructor(random?: () => number) {
    const onEvent = (event: StateMachineEvent): void => {
      if (event.type !== "finished") return;
      if (event.stateMachineArn === this.keeperMachine && event.status !== "SUCCEEDED")
        this.deliverKeepers({ detail: statusEvent(this.describe(event.executionArn)).detail });
      if (event.stateMachineArn !== this.workMachine) return;
      const { executionArn, status } = event;
      this.deliver({ key, detail: { executionArn, status } });
    };
    this.steps = new StepFunctions(this.clock, onEvent, random === undefined ? {} : { random });
    this.client = this.clientOf("holder");
    this.keeperMachine = this.steps.define("keeper", keeperDefinition(terms));
    this.#ended = this.steps.define("ended", endedDefinition({ ...terms, keeperArn: this.keeperMachine }));
    this.workMachine = this.steps.define("work", {
      QueryLanguage: "JSONata",
      StartAt: "Long",
      States: { Long: { Type: "Wait", Seconds: 90_000_000, End: true } },
    });
  }

  clientOf(owner: string): LeaseClient {
    return new LeaseClient({ store: this.steps.store, clock: this.clock, owner, leaseDurationMs });
  }

  /** Starts work that holds the lock, and a keeper beside it that has begun. */
  async guarded(
    durationMs: number = leaseDurationMs,
  ): Promise<{ lease: Awaited<ReturnType<LeaseClient["acquire"]>>; work: string; keeper: string }> {
    const work = this.startWork();
    const lease = await this.client.acquire(key, {
      owner: `workflow:${work}`,
      leaseDurationMs: durationMs,
    });
    const keeper = this.startKeeper({ lease: lease.toJSON(), guarded: work });
    await this.clock.advance(0);
    return { lease, work, keeper };
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

  token(): unknown {
    return this.steps.lease(key)?.token;
  }

  expiresAt(): number {
    return Number(this.steps.lease(key)?.expiresAt);
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
