import { AsyncLocalStorage } from "node:async_hooks";
import {
  DurableExecutionInvocationInputWithClient,
  type DurableLambdaHandler,
  type ErrorObject,
  type OperationUpdate,
  type WireOperation,
} from "@aws/durable-execution-sdk-js";
import type { ManualClock } from "@leasehold/client/testing";
import type { Context } from "aws-lambda";

/** A request that a process made, numbered over all of them: where one can be killed. */
export type Boundary = {
  readonly number: number;
  readonly what: string;
};

/** When a process dies: before its request has had an effect, or after, without having its answer. */
export type Death = { readonly at: number; readonly when: "before" | "after" };

type Operation = { -readonly [Field in keyof WireOperation]: WireOperation[Field] };

/** One durable execution, as Lambda keeps it. */
export interface Execution {
  readonly arn: string;
  readonly handler: DurableLambdaHandler;
  readonly payload: string;
  status: "RUNNING" | "SUCCEEDED" | "FAILED" | "STOPPED";
  result: unknown;
  error: ErrorObject | undefined;
  readonly operations: Map<string, Operation>;
  invocations: number;
  /** The invocation that may make checkpoints. */
  token: string;
  /** Whether something has happened that an invocation has not seen. */
  isDue: boolean;
}

/** One invocation's process. */
interface Process {
  isDead: boolean;
  readonly kill: () => void;
}

/** In which process of which service the code runs. */
const processes = new AsyncLocalStorage<Process>();

/**
 * In a process a timer ends at once. The SDK has two, of the host's time: it suspends an execution 20 ms after the last
 * thing that is left to do, where it looks once more, and it notes something for its log after half a second.
 */
const { setTimeout: later } = globalThis;
globalThis.setTimeout = Object.assign(
  (...[body, ms, ...given]: Parameters<typeof later>) =>
    later(body, processes.getStore() === undefined ? ms : 0, ...given),
  later,
);

/** Never comes back. */
const silence = new Promise<never>(() => undefined);

/**
 * Lambda's durable executions on a clock of the test's own: checkpoints, replays, suspended executions that wake by time
 * or callback, and processes that die at any of their requests.
 *
 * Of the checkpoint API it does what the SDK's operations need: steps, waits, callbacks and contexts. An operation that
 * it does not know is an error. As in Lambda, the children of a finished context are gone, and a late invocation's
 * checkpoint is refused.
 */
export class DurableService {
  readonly clock: Pick<ManualClock, "now" | "advance">;
  readonly executions: Execution[] = [];
  /** Every request of every execution's processes, in order. */
  readonly boundaries: Boundary[] = [];
  /** Called whenever somebody may have done something. */
  afterTurn: () => Promise<void> = async () => undefined;
  readonly #deaths: Death[] = [];
  #callbacks = 0;

  constructor(clock: Pick<ManualClock, "now" | "advance">) {
    this.clock = clock;
  }

  /** Starts an execution; under a name that is known, gives the one that has it. */
  start(
    handler: DurableLambdaHandler,
    input: unknown,
    name = `run-${this.executions.length + 1}`,
  ): Execution {
    const arn = `arn:aws:lambda:eu-central-1:123456789012:function:orders:7/durable-execution/${name}/4c1f`;
    const known = this.executions.find((execution) => execution.arn === arn);
    if (known !== undefined) return known;
    const payload = JSON.stringify(input);
    const execution: Execution = {
      arn,
      handler,
      payload,
      status: "RUNNING",
      result: undefined,
      error: undefined,
      operations: new Map(),
      invocations: 0,
      token: "",
      isDue: true,
    };
    this.executions.push(execution);
    return execution;
  }

  /** Kills the process that makes a request. */
  killAt(...deaths: Death[]): void {
    this.#deaths.push(...deaths);
  }

  /** Makes a request of a process, unless it dies there. */
  async request<T>(what: string, send: () => Promise<T>): Promise<T> {
    const process = processes.getStore();
    // What belongs to no execution does not die here.
    if (process === undefined) return await send();
    if (process.isDead) return await silence;
    const number = this.boundaries.length + 1;
    this.boundaries.push({ number, what });
    const death = this.#deaths.find(({ at }) => at === number);
    if (death === undefined) return await send();
    if (death.when === "after") await send().catch(() => undefined);
    process.isDead = true;
    process.kill();
    return await silence;
  }

  /** Lets time pass until all executions have ended, or until that time is over. */
  async play(forMs: number): Promise<void> {
    const until = this.clock.now() + forMs;
    for (let turns = 0; turns < 100_000; turns += 1) {
      await this.afterTurn();
      this.#tick();
      const due = this.executions.find((execution) => execution.status === "RUNNING" && execution.isDue);
      if (due !== undefined) {
        await this.invoke(due);
        continue;
      }
      const next = Math.min(...this.executions.map((execution) => this.#nextTime(execution)));
      if (next > until) {
        await this.clock.advance(Math.max(0, until - this.clock.now()));
        return;
      }
      await this.clock.advance(Math.max(0, next - this.clock.now()));
    }
    throw new Error("the executions never come to rest");
  }

  /** Plays executions that are all due, each in a process of its own at the same time. */
  async playTogether(): Promise<void> {
    await Promise.all(this.executions.map((execution) => this.invoke(execution)));
  }

  /** Completes a callback. False when nobody waits for it any more. */
  complete(callbackId: string, result = ""): boolean {
    for (const execution of this.executions) {
      if (execution.status !== "RUNNING") continue;
      for (const operation of execution.operations.values()) {
        const { CallbackDetails: details } = operation;
        if (details?.CallbackId !== callbackId) continue;
        if (operation.Status !== "STARTED") return false;
        operation.Status = "SUCCEEDED";
        operation.CallbackDetails = { ...details, Result: result };
        execution.isDue = true;
        return true;
      }
    }
    return false;
  }

  /** As StopDurableExecution. */
  stop(execution: Execution): void {
    execution.status = "STOPPED";
  }

  /** Runs one invocation, until it answers or dies. */
  async invoke(execution: Execution): Promise<void> {
    execution.isDue = false;
    execution.invocations += 1;
    const token = `${execution.arn}#${execution.invocations}`;
    execution.token = token;
    const event = new DurableExecutionInvocationInputWithClient(
      {
        DurableExecutionArn: execution.arn,
        CheckpointToken: token,
        InitialExecutionState: {
          Operations: [
            {
              Id: "execution",
              Type: "EXECUTION",
              Status: "STARTED",
              StartTimestamp: new Date(this.clock.now()),
              ExecutionDetails: { InputPayload: execution.payload },
            },
            ...execution.operations.values(),
          ],
          NextMarker: "",
        },
      },
      {
        getExecutionState: async () => ({ Operations: [], NextMarker: "" }),
        checkpoint: async ({ Updates = [], CheckpointToken }) => {
          const what = Updates.map(({ Action, Name, Type }) => `${Action} ${Name ?? Type}`).join(", ");
          return await this.request(`checkpoint: ${what}`, async () => {
            if (CheckpointToken !== execution.token || execution.status !== "RUNNING") {
              throw Object.assign(new Error("Invalid Checkpoint Token"), {
                name: "InvalidParameterValueException",
                $metadata: { httpStatusCode: 400 },
              });
            }
            const Operations = Updates.map((update) => this.#apply(execution, update));
            return { CheckpointToken, NewExecutionState: { Operations } };
          });
        },
      },
    );
    const { promise: death, resolve } = Promise.withResolvers<"died">();
    const process: Process = { isDead: false, kill: () => resolve("died") };
    // No time is left to wait in the process: whatever waits suspends the execution.
    const context = { awsRequestId: token, getRemainingTimeInMillis: () => 0 } as Context;
    const answering = processes.run(process, () => execution.handler(event, context));
    const answer = await Promise.race([answering.catch(() => "died" as const), death]);
    if (execution.status !== "RUNNING") return;
    if (answer === "died") {
      execution.isDue = true;
    } else if (answer.Status === "SUCCEEDED") {
      execution.status = "SUCCEEDED";
      if (answer.Result !== undefined && answer.Result !== "") execution.result = JSON.parse(answer.Result);
    } else if (answer.Status === "FAILED") {
      execution.status = "FAILED";
      execution.error = answer.Error;
    }
  }

  #apply(execution: Execution, update: OperationUpdate): Operation {
    const { operations } = execution;
    const { Id = "", ParentId, Name, Type, SubType, Action, Payload, Error: error } = update;
    const now = this.clock.now();
    const operation: Operation = operations.get(Id) ?? {
      Id,
      ParentId,
      Name,
      Type,
      SubType,
      Status: "STARTED",
      StartTimestamp: new Date(now),
    };
    operations.set(Id, operation);
    const status = statuses.get(Action);
    if (status === undefined) throw new Error(`this action is not known here: ${Action}`);
    operation.Status = status;
    switch (Type) {
      case "STEP": {
        const before = operation.StepDetails ?? {};
        const delayMs = (update.StepOptions?.NextAttemptDelaySeconds ?? 1) * 1_000;
        operation.StepDetails = {
          ...before,
          ...(Payload === undefined ? {} : { Result: Payload }),
          ...(error === undefined ? {} : { Error: error }),
          ...(Action === "RETRY"
            ? { Attempt: (before.Attempt ?? 0) + 1, NextAttemptTimestamp: new Date(now + delayMs) }
            : {}),
        };
        break;
      }
      case "WAIT":
        operation.WaitDetails = {
          ScheduledEndTimestamp: new Date(now + (update.WaitOptions?.WaitSeconds ?? 0) * 1_000),
        };
        break;
      case "CALLBACK": {
        this.#callbacks += 1;
        const timeout = update.CallbackOptions?.TimeoutSeconds;
        operation.CallbackDetails = {
          CallbackId: Buffer.from(`callback-${this.#callbacks}`).toString("base64"),
        };
        if (timeout !== undefined) operation.EndTimestamp = new Date(now + timeout * 1_000);
        break;
      }
      case "CONTEXT":
        operation.ContextDetails = {
          Result: Payload,
          Error: error,
          ReplayChildren: update.ContextOptions?.ReplayChildren,
        };
        if (Action !== "START" && update.ContextOptions?.ReplayChildren !== true) forget(operations, Id);
        break;
      case "EXECUTION":
        execution.result = JSON.parse(Payload ?? "null");
        break;
      default:
        throw new Error(`this operation is not known here: ${Type}`);
    }
    return structuredClone(operation);
  }

  /** Lets everything happen that is due by now. */
  #tick(): void {
    const now = this.clock.now();
    for (const execution of this.executions) {
      for (const operation of execution.operations.values()) {
        if ((timeOf(operation) ?? Number.POSITIVE_INFINITY) > now) continue;
        operation.Status =
          operation.Type === "STEP" ? "READY" : operation.Type === "WAIT" ? "SUCCEEDED" : "TIMED_OUT";
        execution.isDue = true;
      }
    }
  }

  #nextTime(execution: Execution): number {
    if (execution.status !== "RUNNING") return Number.POSITIVE_INFINITY;
    const times = [...execution.operations.values()].map((operation) => timeOf(operation));
    return Math.min(...times.filter((time) => time !== undefined), Number.POSITIVE_INFINITY);
  }
}

const statuses = new Map<OperationUpdate["Action"], Operation["Status"]>([
  ["START", "STARTED"],
  ["SUCCEED", "SUCCEEDED"],
  ["FAIL", "FAILED"],
  ["RETRY", "PENDING"],
]);

/** When an operation goes on by itself. */
function timeOf({ Type, Status, StepDetails, WaitDetails, EndTimestamp }: Operation): number | undefined {
  const time =
    Type === "STEP" && Status === "PENDING"
      ? StepDetails?.NextAttemptTimestamp
      : Type === "WAIT" && Status === "STARTED"
        ? WaitDetails?.ScheduledEndTimestamp
        : Type === "CALLBACK" && Status === "STARTED"
          ? EndTimestamp
          : undefined;
  return time === undefined ? undefined : new Date(time).getTime();
}

function forget(operations: Map<string, Operation>, parent: string): void {
  for (const [id, { ParentId }] of operations) {
    if (ParentId !== parent) continue;
    operations.delete(id);
    forget(operations, id);
  }
}
