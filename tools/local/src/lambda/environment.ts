// One execution environment: a process that serves one invocation at a time and is frozen in between.

import type { Clock } from "@leasehold/client";
import {
  type OrphanGuard,
  type Outcome,
  processEnvironment,
  type RuntimeMessage,
  Sandbox,
} from "./sandbox.ts";
import type {
  EnvironmentInfo,
  EnvironmentState,
  FunctionDefinition,
  LambdaEvent,
  LambdaEventType,
  LambdaLogLine,
} from "./types.ts";

/** An error as a function's caller sees it. */
interface ErrorPayload {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace?: readonly string[];
}

/** A failed invocation. */
function failure(error: ErrorPayload): Outcome {
  return { payload: JSON.stringify(error), functionError: "Unhandled" };
}

/** The process ended, by itself or by force, before it answered. */
function exited(requestId: string, reason: string): Outcome {
  return failure({
    errorType: "Runtime.ExitError",
    errorMessage: `RequestId: ${requestId} Error: ${reason}`,
  });
}

/** The words in which Lambda says how a process ended. */
function exitReason(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal !== null) {
    const words: Partial<Record<NodeJS.Signals, string>> = { SIGKILL: "killed", SIGTERM: "terminated" };
    return `Runtime exited with error: signal: ${words[signal] ?? signal}`;
  }
  return code === 0
    ? "Runtime exited without providing a reason"
    : `Runtime exited with error: exit status ${code}`;
}

/** The time was up. The message is that of Lambda's own log line. */
function timedOut(requestId: string, timeoutMs: number, now: number): Outcome {
  const seconds = (timeoutMs / 1000).toFixed(2);
  return failure({
    errorType: "Sandbox.Timedout",
    errorMessage: `${new Date(now).toISOString()} ${requestId} Task timed out after ${seconds} seconds`,
  });
}

/** Lambda's own bounds. */
const lambdaLimits = {
  /** How long code may take to load before its first invocation. */
  initMs: 10_000,
  /** How long a process has after SIGTERM. Lambda gives 300 to 500 ms where an internal extension asked for it. */
  shutdownMs: 400,
} as const;

/** One invocation on its way through an environment. */
export interface Invocation {
  readonly requestId: string;
  readonly payload: string;
  /** Called once, when the environment is ready for the next one or gone. */
  readonly settle: (outcome: Outcome) => void;
}

/** What all environments of a runtime share. */
export interface EnvironmentContext {
  readonly clock: Clock;
  readonly guard: OrphanGuard;
  readonly baseEnvironment: Readonly<Record<string, string>>;
  readonly log: (line: LambdaLogLine) => void;
  readonly publish: (event: LambdaEvent) => void;
}

/**
 * One execution environment: its process, and what state it is in.
 *
 * It is started for one invocation, serves others after it, one at a time, and is stopped in between. An invocation is
 * settled when the process is free for the next one, or gone: a caller that invokes again at once finds this environment
 * idle, and never a killed process that still runs.
 */
export class Environment {
  readonly id: string;
  readonly #fn: FunctionDefinition;
  readonly #context: EnvironmentContext;
  readonly #onGone: () => void;
  readonly #gone = Promise.withResolvers<void>();
  #state: EnvironmentState = "starting";
  #frozen = false;
  readonly #sandbox: Sandbox;
  #invocation: Invocation | undefined;
  /** How the invocation ended that the process does not outlive. */
  #outcome: Outcome | undefined;
  /** The request whose output it is that comes in. */
  #printing: string | undefined;
  #cancelTimeout: () => void = () => {};

  /** @param onGone Called when its process is gone. */
  constructor(
    id: string,
    fn: FunctionDefinition,
    context: EnvironmentContext,
    first: Invocation,
    onGone: () => void,
  ) {
    this.id = id;
    this.#fn = fn;
    this.#context = context;
    this.#invocation = first;
    this.#onGone = onGone;
    const { clock, guard, baseEnvironment } = context;
    this.#sandbox = new Sandbox(fn, processEnvironment(fn, baseEnvironment, clock.now()), guard, {
      line: (line) => this.#line(line),
      message: (message) => this.#heard(message),
      ended: (code, signal) => this.#ended(exitReason(code, signal)),
    });
    this.#limit(lambdaLimits.initMs);
    this.#publish("started");
  }

  get state(): EnvironmentState {
    return this.#state;
  }

  /** Resolves when the process is gone. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  get info(): EnvironmentInfo {
    return {
      id: this.id,
      functionName: this.#fn.name,
      pid: this.#sandbox.pid,
      state: this.#state,
      frozen: this.#frozen,
      ...(this.#invocation ? { requestId: this.#invocation.requestId } : {}),
    };
  }

  /** Gives an idle environment its next invocation. */
  invoke(invocation: Invocation): void {
    this.#thaw();
    this.#invocation = invocation;
    this.#begin();
  }

  /** Stops the process, whatever it is doing. Its timeout runs on. */
  freeze(): void {
    if (this.#frozen || this.#state === "gone") return;
    this.#frozen = true;
    this.#sandbox.signalAll("SIGSTOP");
    this.#publish("frozen");
  }

  /** Continues a process that `freeze` stopped; an idle one stays stopped until its next invocation. */
  thaw(): void {
    if (this.#state !== "idle") this.#thaw();
  }

  /** Kills the process as a crash would. */
  kill(): void {
    if (this.#state === "gone") return;
    this.#publish("killed");
    this.#kill();
  }

  /** Ends an idle process as Lambda does, with SIGTERM first, and any other at once. */
  async shutdown(): Promise<void> {
    if (this.#state === "idle") {
      this.#thaw();
      this.#state = "gone";
      this.#sandbox.terminate();
      // The machine's timer: an injected clock may stand still.
      const timer = setTimeout(() => this.#sandbox.signalAll("SIGKILL"), lambdaLimits.shutdownMs);
      await this.gone;
      clearTimeout(timer);
    } else {
      this.#kill();
      await this.gone;
    }
  }

  #heard(message: RuntimeMessage): void {
    if (message === "ready") {
      if (this.#state === "starting") this.#begin();
      return;
    }
    const { isLast = false, ...outcome } = message;
    if (this.#state === "gone" || this.#outcome !== undefined) return;
    if (isLast) {
      this.#fail(outcome);
      return;
    }
    this.#publish(outcome.functionError ? "failed" : "responded");
    this.#state = "idle";
    this.#settle(outcome);
    this.freeze();
  }

  #begin(): void {
    const { requestId, payload } = this.#invocation as Invocation;
    this.#state = "busy";
    this.#printing = requestId;
    const { timeoutMs, arn } = this.#fn;
    this.#limit(timeoutMs);
    this.#publish("invoked");
    // The function has the machine's clock, whatever clock times it here.
    this.#sandbox.deliver({ requestId, payload, deadlineMs: Date.now() + timeoutMs, functionArn: arn });
  }

  #fail(outcome: Outcome): void {
    this.#outcome = outcome;
    this.#publish("failed");
  }

  #limit(delayMs: number): void {
    this.#cancelTimeout();
    this.#cancelTimeout = this.#context.clock.schedule(() => {
      const requestId = this.#invocation?.requestId;
      if (requestId !== undefined && this.#outcome === undefined) {
        this.#outcome = timedOut(requestId, delayMs, this.#context.clock.now());
        this.#publish("timedOut");
      }
      this.#kill();
    }, delayMs);
  }

  #kill(): void {
    this.#state = "gone";
    this.#cancelTimeout();
    this.#sandbox.signalAll("SIGKILL");
  }

  #ended(reason: string): void {
    this.#state = "gone";
    this.#frozen = false;
    this.#cancelTimeout();
    const invocation = this.#invocation;
    if (invocation !== undefined && this.#outcome === undefined) {
      this.#fail(exited(invocation.requestId, reason));
    }
    this.#publish("ended");
    this.#gone.resolve();
    if (this.#outcome !== undefined) this.#settle(this.#outcome);
    this.#onGone();
  }

  #settle(outcome: Outcome): void {
    this.#cancelTimeout();
    const invocation = this.#invocation;
    this.#invocation = undefined;
    invocation?.settle(outcome);
  }

  #thaw(): void {
    if (!this.#frozen) return;
    this.#frozen = false;
    this.#sandbox.signalAll("SIGCONT");
    this.#publish("thawed");
  }

  #line(line: string): void {
    this.#context.log({ ...this.#who(), ...(this.#printing ? { requestId: this.#printing } : {}), line });
  }

  #publish(type: LambdaEventType): void {
    const requestId = this.#invocation?.requestId;
    this.#context.publish({ type, ...this.#who(), ...(requestId ? { requestId } : {}) });
  }

  #who(): { functionName: string; environmentId: string } {
    return { functionName: this.#fn.name, environmentId: this.id };
  }
}
