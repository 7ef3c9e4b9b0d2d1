import { setTimeout as delay } from "node:timers/promises";
import {
  DescribeExecutionCommand,
  ExecutionDoesNotExist,
  paginateGetExecutionHistory,
  paginateListExecutions,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from "@aws-sdk/client-sfn";
import { acceptanceWorkflowKey } from "../../functions/acceptance/schema.ts";
import type { Deployment } from "./deployment.ts";

const pollMs = 500;

/** How an execution stands. */
export interface ExecutionState {
  readonly arn: string;
  readonly status: string;
  readonly input: unknown;
  readonly error: string | undefined;
  readonly cause: string | undefined;
}

/** A state that an execution entered. */
export interface Entered {
  readonly name: string;
  readonly at: Date;
}

/** The executions that acceptance starts, and the keepers that those start. */
export class Executions {
  readonly #sfn = new SFNClient({});
  readonly #deployment: Deployment;
  readonly #begun = new Date();
  readonly #started: string[] = [];

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
  }

  /** How many executions of the workflow were started. */
  get started(): number {
    return this.#started.length;
  }

  async start(): Promise<string> {
    const { workflowArn: stateMachineArn } = this.#deployment;
    const name = `acceptance-${crypto.randomUUID()}`;
    const { executionArn } = await this.#sfn.send(new StartExecutionCommand({ stateMachineArn, name }));
    const arn = String(executionArn);
    this.#started.push(arn);
    while (!(await this.#isVisible(arn))) await delay(pollMs);
    return arn;
  }

  async #isVisible(arn: string): Promise<boolean> {
    try {
      await this.state(arn);
      return true;
    } catch (error) {
      if (error instanceof ExecutionDoesNotExist) return false;
      throw error;
    }
  }

  async stop(executionArn: string): Promise<void> {
    await this.#sfn.send(
      new StopExecutionCommand({ executionArn, error: "Acceptance", cause: "a check, or its end" }),
    );
  }

  /** How an execution stands, or stood a moment ago: DescribeExecution is eventually consistent. */
  async state(arn: string): Promise<ExecutionState> {
    const answer = await this.#sfn.send(new DescribeExecutionCommand({ executionArn: arn }));
    const { status = "", input = "null", error, cause } = answer;
    return { arn, status, input: JSON.parse(input), error, cause };
  }

  /** Waits until an execution has ended, or until the time is over; gives how it stands then. */
  async ended(arn: string, withinMs: number, signal?: AbortSignal): Promise<ExecutionState> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const state = await this.state(arn);
      if (state.status !== "RUNNING" || performance.now() > deadline) return state;
      await delay(pollMs, undefined, { ...(signal && { signal }) });
    }
  }

  /** Waits until an execution has entered a state; false if it ended, or the time was over, before. */
  async reaches(arn: string, stateName: string, withinMs: number, signal: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      if ((await this.entered(arn)).some(({ name }) => name === stateName)) return true;
      if ((await this.state(arn)).status !== "RUNNING" || performance.now() > deadline) return false;
      await delay(pollMs, undefined, { signal });
    }
  }

  /** The states that an execution has entered, in order. */
  async entered(executionArn: string): Promise<Entered[]> {
    const entered: Entered[] = [];
    for await (const { events = [] } of paginateGetExecutionHistory(
      { client: this.#sfn },
      { executionArn, includeExecutionData: false },
    )) {
      for (const { stateEnteredEventDetails, timestamp } of events) {
        if (stateEnteredEventDetails?.name === undefined || timestamp === undefined) continue;
        entered.push({ name: stateEnteredEventDetails.name, at: timestamp });
      }
    }
    return entered;
  }

  /** The keepers of acceptance's workflow that run, or have ended, since this object was made. */
  async keepers(): Promise<ExecutionState[]> {
    const since = this.#begun.getTime() - 60_000;
    const found: ExecutionState[] = [];
    const { heartbeatArn: stateMachineArn } = this.#deployment;
    for await (const { executions = [] } of paginateListExecutions(
      { client: this.#sfn },
      { stateMachineArn },
    )) {
      const recent = executions.filter(({ startDate }) => (startDate?.getTime() ?? 0) >= since);
      for (const { executionArn = "" } of recent) {
        const state = await this.state(executionArn);
        if (isOurs(state.input)) found.push(state);
      }
      // The newest come first.
      if (recent.length < executions.length) break;
    }
    return found;
  }

  /** Stops what still runs of it all, and waits for its end. Gives what could not be ended. */
  async clear(): Promise<{ readonly stopped: number; readonly left: string[] }> {
    let stopped = 0;
    const running = async (arns: readonly string[]): Promise<string[]> => {
      const states = await Promise.all(arns.map((arn) => this.state(arn)));
      return states.filter(({ status }) => status === "RUNNING").map(({ arn }) => arn);
    };
    for (const arn of await running(this.#started)) {
      await this.stop(arn);
      stopped += 1;
    }
    // A keeper sees the end by itself, and lets the lock go: that takes a beat.
    const keepers = this.#started.length === 0 ? [] : (await this.keepers()).map(({ arn }) => arn);
    await Promise.all(keepers.map((arn) => this.ended(arn, 20_000)));
    for (const arn of await running(keepers)) {
      await this.stop(arn);
      stopped += 1;
    }
    return { stopped, left: await running([...this.#started, ...keepers]) };
  }

  close(): void {
    this.#sfn.destroy();
  }
}

function isOurs(input: unknown): boolean {
  const { lease } = (input ?? {}) as { readonly lease?: { readonly key?: unknown } };
  return lease?.key === acceptanceWorkflowKey;
}
