// One execution environment: a process that serves one invocation at a time and is frozen in between.

import type { Clock } from "@leasehold/client";
import { type Delivery, type RuntimeApi, type RuntimeApiHost, startRuntimeApi } from "./runtime-api.ts";
import { type OrphanGuard, processEnvironment, Sandbox } from "./sandbox.ts";
import type {
  EnvironmentInfo,
  EnvironmentState,
  FunctionDefinition,
  LambdaEvent,
  LambdaEventType,
  LambdaLogLine,
} from "./types.ts";

/** How an invocation ended. The payload is the text that the client sent, which is JSON from ours. */
export interface Outcome {
  readonly payload: string;
  readonly functionError?: "Unhandled";
}

/** An error as a function's caller sees it. */
interface ErrorPayload {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace?: readonly string[];
}

/** The payload as a value; text that is no JSON, which other clients may send, stays text. */
export function payloadOf({ payload }: Outcome): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    return payload;
  }
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
 * One execution environment: its process, its Runtime API and what state the two are in.
 *
 * It is started for one invocation, serves others after it, one at a time, and is stopped in between. An invocation
 * is settled when the client asks for the next one, as Lambda ends its invoke phase, or when the process is gone:
 * a caller that invokes again at once finds this environment idle, and never a killed process that still runs.
 */
export class Environment {
  readonly id: string;
  readonly #fn: FunctionDefinition;
  readonly #context: EnvironmentContext;
  readonly #onGone: () => void;
  readonly #gone = Promise.withResolvers<void>();
  #state: EnvironmentState = "starting";
  #frozen = false;
  #sandbox: Sandbox | undefined;
  #api: RuntimeApi | undefined;
  #invocation: Invocation | undefined;
  /** How the invocation ended, once that is known. */
  #outcome: Outcome | undefined;
  /** The request whose output it is that comes in. */
  #printing: string | undefined;
  #deliver: ((delivery: Delivery) => void) | undefined;
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
    this.#start().catch((error: unknown) => {
      this.#line(String(error));
      this.#ended(`Runtime could not be started: ${String(error)}`);
    });
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
      pid: this.#sandbox?.pid,
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
    this.#sandbox?.signalAll("SIGSTOP");
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
      this.#sandbox?.terminate();
      // The machine's timer: an injected clock may stand still.
      const timer = setTimeout(() => this.#sandbox?.signalAll("SIGKILL"), lambdaLimits.shutdownMs);
      await this.gone;
      clearTimeout(timer);
    } else {
      this.#kill();
      await this.gone;
    }
  }

  async #start(): Promise<void> {
    this.#api = await startRuntimeApi(this.#runtimeApi());
    if (this.#state === "gone") {
      this.#ended(exitReason(null, "SIGKILL"));
      return;
    }
    const { clock, guard, baseEnvironment } = this.#context;
    const variables = processEnvironment(this.#fn, baseEnvironment, this.#api.address, clock.now());
    this.#sandbox = new Sandbox(this.#fn, variables, guard, {
      line: (line) => this.#line(line),
      ended: (code, signal) => this.#ended(exitReason(code, signal)),
    });
    if (this.#frozen) this.#sandbox.signalAll("SIGSTOP");
    this.#limit(lambdaLimits.initMs);
    this.#publish("started");
  }

  #runtimeApi(): RuntimeApiHost {
    return {
      next: (deliver) => this.#next(deliver),
      response: (requestId, body) => this.#answered(requestId, { payload: body }),
      error: (requestId, body) => this.#answered(requestId, { payload: body, functionError: "Unhandled" }),
      initError: (body) => {
        if (this.#state !== "starting") return;
        this.#fail({ payload: body, functionError: "Unhandled" });
        this.#kill();
      },
    };
  }

  /** The client has answered all that it had, and is free. */
  #next(deliver: (delivery: Delivery) => void): void {
    if (this.#state === "starting") {
      this.#cancelTimeout();
      this.#deliver = deliver;
      this.#begin();
      return;
    }
    if (this.#state !== "busy" || this.#outcome === undefined) return;
    this.#deliver = deliver;
    this.#state = "idle";
    this.#settle(this.#outcome);
    this.freeze();
  }

  #begin(): void {
    const { requestId, payload } = this.#invocation as Invocation;
    this.#state = "busy";
    this.#outcome = undefined;
    this.#printing = requestId;
    const { timeoutMs, arn } = this.#fn;
    this.#limit(timeoutMs);
    this.#publish("invoked");
    // The function has the machine's clock, whatever clock times it here.
    this.#deliver?.({ requestId, payload, deadlineMs: Date.now() + timeoutMs, functionArn: arn });
    this.#deliver = undefined;
  }

  #answered(requestId: string, outcome: Outcome): void {
    const isDue = requestId === this.#invocation?.requestId && this.#state === "busy";
    if (!isDue || this.#outcome !== undefined) return;
    if (outcome.functionError) {
      this.#fail(outcome);
    } else {
      this.#outcome = outcome;
      this.#publish("responded");
    }
  }

  #fail(outcome: Outcome): void {
    this.#outcome = outcome;
    this.#publish("failed");
  }

  #limit(delayMs: number): void {
    this.#cancelTimeout = this.#context.clock.schedule(() => {
      const requestId = this.#invocation?.requestId;
      // After the answer the time still counts, but the answer stands.
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
    this.#sandbox?.signalAll("SIGKILL");
  }

  #ended(reason: string): void {
    this.#state = "gone";
    this.#frozen = false;
    this.#cancelTimeout();
    this.#api?.close();
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
    this.#sandbox?.signalAll("SIGCONT");
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
