import type { ILogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { LogLevel } from "aws-cdk-lib/aws-stepfunctions";
import { aFlag, aNumber, having, type Kinds, oneOf } from "../prop-kinds.ts";

/** How the state machines that a construct makes can be observed. Logs never carry the data of executions. */
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
   * For how long its own log groups keep their entries; a `logGroup` has its own. @default RetentionDays.ONE_MONTH
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

/** The part of a construct's props that is about observing; as it is handed on to another construct. */
export function observabilityOf(props: ObservabilityProps): ObservabilityProps {
  return Object.fromEntries(
    names.flatMap((name) => (props[name] === undefined ? [] : [[name, props[name]]])),
  );
}

/** Refuses a retention for a log group that is the user's own. */
export function checkObservability({ logGroup, logRetention }: ObservabilityProps): void {
  if (logGroup === undefined || logRetention === undefined) return;
  throw new Error(
    "logRetention is set beside logGroup, which has a retention of its own: set it there, or leave logGroup out",
  );
}
