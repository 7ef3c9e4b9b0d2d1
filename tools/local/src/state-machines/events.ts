export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "TIMED_OUT";

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
