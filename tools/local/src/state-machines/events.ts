// What the executions tell: a display what happens in them, and EventBridge their status.

export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "TIMED_OUT";

/** What is known of an execution. Input and output are plain JSON values, times ISO texts. */
export interface ExecutionDescription {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  readonly status: ExecutionStatus;
  readonly startDate: string;
  readonly stopDate?: string;
  /** How many times it was redriven. */
  readonly redriveCount: number;
  /** The latest time; only when it was redriven. */
  readonly redriveDate?: string;
  readonly input: unknown;
  /** Only when it succeeded. */
  readonly output?: unknown;
  /** Only when it failed, or was stopped with one. */
  readonly error?: string;
  readonly cause?: string;
}

/** What happens in the executions, for a display. */
export type StateMachineEvent = {
  readonly executionArn: string;
  readonly stateMachineArn: string;
} & (
  | { readonly type: "started" }
  | { readonly type: "redriven"; readonly redriveCount: number }
  | { readonly type: "entered" | "exited"; readonly stateName: string }
  /** An attempt of a state failed; what follows is a retry, a catcher or the end. */
  | { readonly type: "failed"; readonly stateName: string; readonly error: string; readonly cause?: string }
  | { readonly type: "retried"; readonly stateName: string; readonly error: string; readonly delayMs: number }
  | {
      readonly type: "finished";
      readonly status: Exclude<ExecutionStatus, "RUNNING">;
      readonly error?: string;
      readonly cause?: string;
    }
);

/** Listens to the executions. What it throws surfaces as an uncaught exception: a display must not change what it shows. */
export type StateMachineListener = (event: StateMachineEvent) => void;

/** What Step Functions tells EventBridge when an execution has started or ended; there, without data that is too large. */
export function statusEvent(execution: ExecutionDescription): {
  readonly source: string;
  readonly detailType: string;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
} {
  const { executionArn, stateMachineArn, name, status, startDate, stopDate, error, cause } = execution;
  const { input, output } = execution;
  return {
    source: "aws.states",
    detailType: "Step Functions Execution Status Change",
    resources: [executionArn],
    detail: {
      executionArn,
      stateMachineArn,
      name,
      status,
      startDate: Date.parse(startDate),
      stopDate: stopDate === undefined ? null : Date.parse(stopDate),
      input: JSON.stringify(input),
      inputDetails: { included: true },
      output: output === undefined ? null : JSON.stringify(output),
      outputDetails: output === undefined ? null : { included: true },
      error: error ?? null,
      cause: cause ?? null,
    },
  };
}
