// One attempt of a Task state: it settles once, by its call, its token, a timeout or an abort.

import { randomBytes } from "node:crypto";
import type { Clock } from "@leasehold/client";
import { callAfter } from "@leasehold/client/internal";
import { waitsForToken } from "./definition.ts";
import { StatesError, toStatesError } from "./errors.ts";

/** What a service integration is told about the task that it works for. */
export interface TaskContext {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly stateName: string;
  /** Aborts when the result is not needed any more: timeout, stop, a failed sibling. */
  readonly signal: AbortSignal;
  /** Only for resources with `.waitForTaskToken`. */
  readonly taskToken?: string;
}

/**
 * Performs a service integration: takes the resource as it stands in the definition (suffix included) and the
 * evaluated Arguments, gives the result as plain JSON, and throws {@link StatesError} to fail the task. Anything
 * else that it throws fails the task as `States.TaskFailed`.
 */
export type ServiceCall = (resource: string, args: unknown, task: TaskContext) => Promise<unknown>;

/** One attempt of a Task state. */
export interface TaskAttempt {
  readonly resource: string;
  readonly args: unknown;
  readonly context: Omit<TaskContext, "signal">;
  readonly timeoutSeconds: number | undefined;
  /** Aborts when the execution, or the branch, ends. */
  readonly signal: AbortSignal;
  /** Notes an event of the history. */
  readonly record: (type: string) => void;
}

interface Waiter {
  succeed(output: unknown): void;
  fail(error: StatesError): void;
}

/** The tokens of tasks: the open ones, and the closed ones, whose late answers get an error of their own. */
export class TaskTokens {
  readonly #waiting = new Map<string, Waiter>();
  readonly #closed = new Set<string>();

  create(): string {
    return randomBytes(48).toString("base64url");
  }

  open(token: string, waiter: Waiter): void {
    this.#waiting.set(token, waiter);
  }

  close(token: string): void {
    if (this.#waiting.delete(token)) this.#closed.add(token);
  }

  /** @throws StatesError `TaskTimedOut` for a task that is over, `TaskDoesNotExist` for any other token */
  waiter(token: string): Waiter {
    const waiter = this.#waiting.get(token);
    if (waiter !== undefined) return waiter;
    if (this.#closed.has(token)) {
      throw new StatesError("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'");
    }
    throw new StatesError("TaskDoesNotExist", "no task waits for this token");
  }
}

/**
 * Runs one attempt of a task to its end: the call's result, or the answer to its token.
 *
 * A token may be answered before the call that hands it out has returned; the answer counts.
 *
 * @throws StatesError what the task failed with, `States.Timeout`
 */
export function performTask(
  attempt: TaskAttempt,
  clock: Clock,
  tokens: TaskTokens,
  call: ServiceCall,
): Promise<unknown> {
  const { resource, args, context, record } = attempt;
  const token = context.taskToken;
  const submits = waitsForToken(resource) || /\.sync(:\d+)?$/.test(resource);
  const controller = new AbortController();

  return new Promise((resolve, reject) => {
    let settled = false;
    let submitted = !submits;
    const submit = (): void => {
      if (!submitted) record("TaskSubmitted");
      submitted = true;
    };
    const settle = (): boolean => {
      if (settled) return false;
      settled = true;
      cancelTimeout();
      attempt.signal.removeEventListener("abort", onAbort);
      if (token !== undefined) tokens.close(token);
      return true;
    };
    const succeed = (output: unknown): void => {
      if (!settle()) return;
      submit();
      record("TaskSucceeded");
      resolve(output);
    };
    const fail = (error: unknown, event: string | undefined): void => {
      if (!settle()) return;
      if (event !== undefined) record(`Task${event}`);
      controller.abort(error);
      reject(error);
    };
    const onAbort = (): void => fail(attempt.signal.reason, undefined);
    const cancelTimeout =
      attempt.timeoutSeconds === undefined
        ? () => {}
        : callAfter(clock, attempt.timeoutSeconds * 1000, () =>
            fail(new StatesError("States.Timeout"), "TimedOut"),
          );

    record("TaskScheduled");
    record("TaskStarted");
    attempt.signal.addEventListener("abort", onAbort, { once: true });
    // The history may have been full just now.
    if (attempt.signal.aborted) return onAbort();
    if (token !== undefined) {
      tokens.open(token, { succeed, fail: (error) => fail(error, "Failed") });
    }
    const answer = new Promise<unknown>((done) => {
      done(call(resource, args, { ...context, signal: controller.signal }));
    });
    answer.then(
      (result) => {
        if (settled) return;
        if (token === undefined) succeed(result);
        else submit();
      },
      (error) => fail(toStatesError(error), "Failed"),
    );
  });
}
