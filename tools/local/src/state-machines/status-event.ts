// The event by which EventBridge hears of an execution's status.

import type { ExecutionDescription } from "./execution.ts";

/** EventBridge leaves out data whose escaped text is longer than this, in bytes. */
const mostDataBytes = 248 * 1024;

/** What Step Functions tells EventBridge when an execution has started or ended. */
export function statusEvent(execution: ExecutionDescription): {
  readonly source: string;
  readonly detailType: string;
  readonly resources: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
} {
  const { executionArn, stateMachineArn, name, status, startDate, stopDate, error, cause } = execution;
  const input = JSON.stringify(execution.input);
  const output = execution.output === undefined ? undefined : JSON.stringify(execution.output);
  const hasOutput = output !== undefined && escapedBytes(output) <= mostDataBytes;
  const hasInput = escapedBytes(input) + escapedBytes(output ?? "") <= mostDataBytes;
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
      input: hasInput ? input : null,
      inputDetails: { included: hasInput },
      output: hasOutput ? output : null,
      outputDetails: output === undefined ? null : { included: hasOutput },
      error: error ?? null,
      cause: cause ?? null,
    },
  };
}

function escapedBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
