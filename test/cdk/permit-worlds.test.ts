// Random courses of workflows, clients and keepers that share a semaphore, while calls fail, get lost and come late.

import { LeaseClient, LeaseError } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { endedDefinition } from "../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import { seatsIn, takenBy } from "../../packages/client/src/primitives/seats/seat.ts";
import { type StateMachineEvent, statusEvent } from "../../tools/local/src/state-machines/events.ts";
import { machineArn, StepFunctions, workflowTerms } from "../support/step-functions.ts";

const permits = 2;
const leaseDurationMs = 9_000;
const key = "import";
const terms = { tableName: "leases", retentionMs: 604_800_000 };
const place = { pk: key, sk: "semaphore" };

const task = (more: object) => ({
  Type: "Task",
  QueryLanguage: "JSONata",
  Resource: "arn:aws:states:::work:do",
  Arguments: { token: "{% $lease.token %}", fence: "{% $lease.fencingToken %}" },
  ...more,
});
const work = { StartAt: "One", States: { One: task({ Next: "Two" }), Two: task({ End: true }) } };

interface Sent {
  readonly token: string;
  readonly fence: number;
}

class World {
  readonly clock = new ManualClock();
  readonly steps: StepFunctions;
  readonly client: LeaseClient;
  readonly semaphore: Semaphore;
  readonly workflow: string;
  readonly faults: string[] = [];
  readonly seen = new Set<string>();
  readonly #held: Awaited<ReturnType<Semaphore["acquire"]>>[] = [];
  /** Tokens of leases whose keeper was aborted: their work may go on for a while without one. */
  readonly #unkept = new Set<string>();

  constructor(lockAtLeastForMs: number) {
    this.steps = new StepFunctions(this.clock, (event) => this.#heard(event));
    this.client = new LeaseClient({
      store: this.steps.store,
      clock: this.clock,
      owner: "client",
      leaseDurationMs,
    });
    this.semaphore = new Semaphore(this.client, key, { permits });
    const keeperArn = this.steps.define("keeper", keeperDefinition(terms));
    this.steps.define("ended", endedDefinition({ ...terms, keeperArn }));
    const parts = { permits, lockAtLeastForMs };
    this.workflow = this.steps.define("workflow", workflowDefinition(workflowTerms(work, parts)));
    this.steps.resources.set("work:do", (sent: Sent) => this.#work(sent));
  }

  executions(name: string) {
    return this.steps.machines.executions(machineArn(name));
  }

  running(name: string): string[] {
    const running = this.executions(name).filter(({ status }) => status === "RUNNING");
    return running.map(({ executionArn }) => executionArn);
  }

  async take(step: Step): Promise<void> {
    const { machines } = this.steps;
    const pick = (all: readonly string[]): string | undefined => all[step.which % Math.max(1, all.length)];
    if (step.kind === "start") machines.start({ stateMachineArn: this.workflow, input: { key } });
    else if (step.kind === "stop") this.#stop(pick(this.running("workflow")));
    else if (step.kind === "abort keeper") this.#abort(pick(this.running("keeper")));
    else if (step.kind === "acquire") await this.#acquire(step.which);
    else if (step.kind === "release") await this.#held.pop()?.release();
    else if (step.kind === "lose")
      this.steps.loseAnswers(actions[step.which % 2] as string, 1 + (step.which % 4));
    else if (step.kind === "fail") this.steps.fail(actions[step.which % 2] as string, 1 + (step.which % 4));
    else this.steps.answerLate(actions[step.which % 2] as string, 1, 100 * step.which);
    for (let passed = 0; passed < step.ms; passed += 500) {
      await this.clock.advance(500);
      this.check();
    }
  }

  /** A counter equals its seats, and never more permits are taken than there are. */
  check(): void {
    const taken = takenBy(seatsIn(this.steps.store.peek(place)), "permit");
    if (taken > permits) this.faults.push(`${taken} permits are taken`);
  }

  /** Everything comes to its end, and every permit is free again. */
  async settle(): Promise<void> {
    this.steps.heal();
    for (const lease of this.#held) await lease.release().catch(() => undefined);
    await this.clock.advance(600_000);
    this.check();
    for (const name of ["workflow", "keeper", "ended"])
      if (this.running(name).length > 0) this.faults.push(`${name} goes on`);
    const { free } = await this.semaphore.inspect();
    if (free !== permits) this.faults.push(`${free} permits are free in the end`);
    const last = this.steps.machines.start({ stateMachineArn: this.workflow, input: { key } });
    await this.clock.advance(60_000);
    const { status, error } = this.steps.machines.describe(last.executionArn);
    if (status !== "SUCCEEDED") this.faults.push(`the last workflow ends as ${status}: ${error}`);
  }

  #stop(execution: string | undefined): void {
    if (execution === undefined) return;
    this.seen.add("stop");
    this.steps.machines.stop(execution);
  }

  #abort(keeper: string | undefined): void {
    if (keeper === undefined) return;
    const { lease } = this.steps.machines.describe(keeper).input as { readonly lease: Sent };
    this.#unkept.add(lease.token);
    this.seen.add("abort");
    this.steps.machines.stop(keeper);
  }

  /** Every other one is of a process that dies: nobody renews it or lets it go. */
  async #acquire(which: number): Promise<void> {
    try {
      const lease = await this.semaphore.tryAcquire({
        heartbeat: which % 2 === 0,
        permits: 1 + (which % 3 === 0 ? 1 : 0),
      });
      if (lease === undefined) return;
      this.seen.add("a client's");
      if (which % 2 === 0) this.#held.push(lease);
    } catch (error) {
      if (!(error instanceof LeaseError)) throw error;
    }
  }

  async #work({ token, fence }: Sent): Promise<object> {
    const item = this.steps.store.peek(place);
    const stands = item?.[`f:${token}`] === fence;
    if (!stands && !this.#unkept.has(token)) this.faults.push("work is sent without its permit");
    this.seen.add("work");
    await new Promise<void>((resolve) => this.clock.schedule(resolve, 8_000));
    return {};
  }

  #heard(event: StateMachineEvent): void {
    if (event.type !== "finished") return;
    const described = this.steps.machines.describe(event.executionArn);
    if (event.stateMachineArn === machineArn("workflow"))
      this.seen.add(String(described.error ?? event.status));
    if (event.status === "SUCCEEDED") return;
    const { detail } = statusEvent(described);
    // One event in three is lost: then the keeper lets go.
    const isKeeper = event.stateMachineArn === machineArn("keeper");
    if (!isKeeper && this.executions("workflow").length % 3 === 0) return;
    const input = isKeeper
      ? { detail }
      : { key, sortKey: "semaphore", detail: { executionArn: event.executionArn } };
    if (event.stateMachineArn !== machineArn("ended"))
      this.steps.machines.start({ stateMachineArn: machineArn("ended"), input });
  }
}

const actions = ["dynamodb:updateItem", "dynamodb:getItem"];
const kinds = [
  "start",
  "start",
  "start",
  "stop",
  "abort keeper",
  "acquire",
  "release",
  "lose",
  "fail",
  "late",
] as const;
const step = fc.record({
  kind: fc.constantFrom(...kinds),
  which: fc.nat(60),
  ms: fc.constantFrom(0, 500, 3_000, 12_000),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

it("never are more permits taken than there are, no work begins without one, and all are free in the end", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 8, maxLength: 30 }),
      fc.constantFrom(0, 5_000),
      async (steps, lockAtLeastForMs) => {
        const world = new World(lockAtLeastForMs);
        for (const one of steps) await world.take(one);
        await world.settle();
        for (const what of world.seen) seen.add(what);
        expect(world.faults).toEqual([]);
      },
    ),
    { numRuns: 25, seed: 7 },
  );
  for (const what of ["work", "stop", "abort", "a client's", "SUCCEEDED", "LeaseUnavailableError"])
    expect(seen).toContain(what);
}, 300_000);
