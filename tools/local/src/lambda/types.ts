// What a LambdaRuntime takes and gives.

import type { Clock } from "@leasehold/client";

/** A function as the template describes it. */
export interface FunctionDefinition {
  /** The function's name, as callers use it. */
  readonly name: string;
  /** What the handler sees as `invokedFunctionArn`. */
  readonly arn: string;
  /** The directory with the bundle: what Lambda has as /var/task. */
  readonly codeDir: string;
  /** File and export, such as `index.handler`: looked for in index.js, index.mjs and index.cjs. */
  readonly handler: string;
  /** The variables that the template sets. */
  readonly environment: Readonly<Record<string, string>>;
  /** How long an invocation may take, in milliseconds. */
  readonly timeoutMs: number;
  /** The memory in MB. Bounds the heap; nothing else is limited. */
  readonly memoryMb: number;
  /** How many invocations may run at once, from 0 (every one is throttled); undefined for no bound. */
  readonly reservedConcurrency: number | undefined;
  /** How often a failed asynchronous invocation is tried again. */
  readonly retries: number;
  /** The wait before the first retry of an asynchronous invocation; the second waits twice as long. */
  readonly retryDelayMs: number;
}

/** How an invocation ended, as the service reports it: a function's own error is an answer too. */
export interface InvokeResult {
  /** What the handler returned, or `{ errorType, errorMessage, trace? }`. */
  readonly payload: unknown;
  /** Set when the payload is an error. */
  readonly functionError?: "Unhandled";
  readonly requestId: string;
}

/** One request's options. */
export interface InvokeOptions {
  /** Gives up waiting. The function runs on, as it does on Lambda when a caller goes away. @default - waits */
  readonly signal?: AbortSignal;
  /** The request id that the handler sees. @default - a new UUID */
  readonly requestId?: string;
}

/**
 * - `starting`: the process loads its code. Its first invocation waits for that.
 * - `busy`: an invocation is under way.
 * - `idle`: waits for the next invocation, stopped as Lambda stops it.
 * - `gone`: it was told to end, and its process has not ended yet.
 */
export type EnvironmentState = "starting" | "idle" | "busy" | "gone";

/** One execution environment: a process that serves one invocation at a time. */
export interface EnvironmentInfo {
  readonly id: string;
  readonly functionName: string;
  /** Undefined until the process was started. */
  readonly pid: number | undefined;
  readonly state: EnvironmentState;
  /** Whether the process is stopped (SIGSTOP), between invocations or by `freeze`. */
  readonly frozen: boolean;
  /** The invocation that it has, or for which it is being started. */
  readonly requestId?: string;
}

/** A line that a function wrote to standard output or standard error. */
export interface LambdaLogLine {
  readonly functionName: string;
  readonly environmentId: string;
  /** The invocation during which it was read; undefined while the code is loaded. */
  readonly requestId?: string;
  readonly line: string;
}

/** What can happen to an environment. */
export type LambdaEventType =
  | "started"
  | "invoked"
  | "responded"
  | "failed"
  | "timedOut"
  | "frozen"
  | "thawed"
  | "killed"
  | "ended";

/** Something happened to an environment. `frozen` and `thawed` come for Lambda's own freezes as well. */
export interface LambdaEvent {
  readonly type: LambdaEventType;
  readonly functionName: string;
  readonly environmentId: string;
  readonly requestId?: string;
}

/** What a runtime is started with. */
export interface LambdaRuntimeOptions {
  /** Takes every line that a function prints. @default - dropped */
  readonly onLog?: (line: LambdaLogLine) => void;
  /** Takes what happens to the environments. @default - dropped */
  readonly onEvent?: (event: LambdaEvent) => void;
  /**
   * Times the timeouts and the retries. The functions themselves have the machine's clock, and the deadline that
   * they are told is on it.
   *
   * @default - the machine's own
   */
  readonly clock?: Clock;
  /** Variables for every function, such as a local endpoint; a function's own win. @default - none */
  readonly baseEnvironment?: Readonly<Record<string, string>>;
}
