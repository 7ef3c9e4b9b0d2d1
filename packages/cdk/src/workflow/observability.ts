import type { ILogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { LogLevel } from "aws-cdk-lib/aws-stepfunctions";
import { aFlag, aNumber, having, type Kinds, oneOf } from "../prop-kinds.ts";

/** Logs and traces of the state machines that a construct makes. Logs never have the data of executions. */
export interface ObservabilityProps {
  /** What is logged; `LogLevel.OFF` makes no log group. @default LogLevel.ALL */
  readonly logLevel?: LogLevel;
  /**
   * A log group for all of its state machines. A log group whose name begins with `/aws/vendedlogs/` takes no room in
   * the account's log resource policy, which is limited.
   *
   * @default - a log group for each, which is removed with the stack
   */
  readonly logGroup?: ILogGroup;
  /**
   * How long its own log groups keep their entries; a `logGroup` has its own retention.
   * @default RetentionDays.ONE_MONTH
   */
  readonly logRetention?: RetentionDays;
  /** Whether X-Ray traces its executions. @default true */
  readonly tracing?: boolean;
}

/** The kinds of these props. */
export const observabilityKinds: Kinds<ObservabilityProps> = {
  logLevel: oneOf(...Object.values(LogLevel)),
  logGroup: having("a log group", "logGroupArn", "node"),
  logRetention: aNumber,
  tracing: aFlag,
};

const names = ["logLevel", "logGroup", "logRetention", "tracing"] as const;

/** The observability props of a construct, to pass on to another construct. */
export function observabilityOf(props: ObservabilityProps): ObservabilityProps {
  return Object.fromEntries(
    names.flatMap((name) => (props[name] === undefined ? [] : [[name, props[name]]])),
  );
}

/** Refuses a retention for the user's own log group. */
export function checkObservability({ logGroup, logRetention }: ObservabilityProps): void {
  if (logGroup === undefined || logRetention === undefined) return;
  throw new Error(
    "logRetention is set beside logGroup, which has a retention of its own: set it there, or leave logGroup out",
  );
}
