// What the executions tell: a display what happens in them, and EventBridge their status.

export type ExecutionStatus = "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED" | "TIMED_OUT";

/** What an execution, a task or a state failed with. */
export interface Failure {
  readonly error?: string | undefined;
  readonly cause?: string | undefined;
}

/** What is known of an execution. Input and output are plain JSON values, times ISO texts. */
export interface ExecutionDescription extends Failure {
  readonly executionArn: string;
  readonly stateMachineArn: string;
  readonly name: string;
  readonly status: ExecutionStatus;
  readonly startDate: string;
  readonly stopDate?: string;
  /** How many times it was redriven. */
  readonly redriveCount: number;
  /** The latest time; only when it was redriven. */
  readonly redriveDate?: string | undefined;
  readonly input: unknown;
  /** Only when it succeeded. */
  readonly output?: unknown;
}

/** What happens in the executions, for a display. */
export type StateMachineEvent = {
  readonly executionArn: string;
  readonly stateMachineArn: string;
} & (
  | { readonly type: "started" }
  | { readonly type: "redriven"; readonly redriveCount: number }
  | { readonly type: "entered"; readonly stateName: string }
  /** An attempt of a state failed; what follows is a retry, a catcher or the end. */
  | ({ readonly type: "failed"; readonly stateName: string; readonly error: string } & Failure)
  | ({ readonly type: "finished"; readonly status: Exclude<ExecutionStatus, "RUNNING"> } & Failure)
);

/** Listens to the executions. What it throws surfaces as an uncaught exception: a display must not change what it shows. */
export type StateMachineListener = (event: StateMachineEvent) => void;

/** An execution in the members of DescribeExecution: data as JSON, and each time as the caller has times. */
export function described(
  { input, output, ...metadata }: ExecutionDescription,
  time: (iso: string) => unknown,
): Readonly<Record<string, unknown>> {
  const members = Object.entries(metadata).map(([name, value]) => [
    name,
    value !== undefined && name.endsWith("Date") ? time(String(value)) : value,
  ]);
  return {
    ...Object.fromEntries(members),
    input: JSON.stringify(input),
    inputDetails: { included: true },
    ...(output === undefined ? {} : { output: JSON.stringify(output), outputDetails: { included: true } }),
  };
}

/** What Step Functions tells EventBridge when an execution has started or ended; there, without data that is too large. */
export function statusEvent(execution: ExecutionDescription): {
  readonly detail: Readonly<Record<string, unknown>>;
} {
  const [, , , region, account] = execution.executionArn.split(":");
  const absent = { stopDate: null, output: null, outputDetails: null, error: null, cause: null };
  const event = {
    version: "0",
    id: crypto.randomUUID(),
    "detail-type": "Step Functions Execution Status Change",
    source: "aws.states",
    account,
    time: new Date().toISOString().replace(/\.\d+Z$/, "Z"),
    region,
    resources: [execution.executionArn],
    detail: { ...absent, ...described(execution, Date.parse) },
  };
  return event;
}
