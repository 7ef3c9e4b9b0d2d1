import { Names, RemovalPolicy, Stack } from "aws-cdk-lib";
import type { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { type ILogGroup, LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import {
  type CfnStateMachine,
  DefinitionBody,
  type IStateMachine,
  LogLevel,
  type LogOptions,
  StateMachine,
  type StateMachineProps,
} from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { acceptResource } from "../accepted-findings.ts";
import { aFlag, aNumber, having, type Kinds, oneOf, picked } from "../prop-kinds.ts";
import type { Definition } from "./asl.ts";
import { definitionFile } from "./definition-asset.ts";

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

/** The observability props of a construct, to pass on to another construct. */
export function observabilityOf(props: ObservabilityProps): ObservabilityProps {
  return picked(props, "logLevel", "logGroup", "logRetention", "tracing");
}

/** Refuses a retention for the user's own log group. */
function checkObservability({ logGroup, logRetention }: ObservabilityProps): void {
  if (logGroup === undefined || logRetention === undefined) return;
  throw new Error(
    "logRetention is set beside logGroup, which has a retention of its own: set it there, or leave logGroup out",
  );
}

/** More options of a state machine; the library takes most of them unchanged. */
export interface MachineOptions
  extends Pick<StateMachineProps, "stateMachineName" | "role" | "encryptionConfiguration"> {
  /**
   * Whether the user's work may use all resources of some kind; then we do not accept that finding for the user.
   * @default false
   */
  readonly hasWideWork?: boolean;
}

/**
 * Creates a state machine from a definition, logged and traced. Logs contain no data: an input may have a lease's
 * token.
 */
export function stateMachineOf(
  scope: Construct,
  definition: Definition,
  options: ObservabilityProps & MachineOptions = {},
): StateMachine {
  checkObservability(options);
  const { logLevel = LogLevel.ALL, logGroup, tracing = true } = options;
  const logs = (): LogOptions => ({
    destination: logGroup ?? logGroupOf(scope, options),
    level: logLevel,
    includeExecutionData: false,
  });
  const { path, substitutions } = definitionFile(scope, definition);
  const stateMachine = new StateMachine(scope, "StateMachine", {
    definitionBody: DefinitionBody.fromFile(path),
    definitionSubstitutions: substitutions,
    ...picked(options, "stateMachineName", "role", "encryptionConfiguration"),
    ...(logLevel === LogLevel.OFF ? {} : { logs: logs() }),
    tracingEnabled: tracing,
  });
  if (!options.hasWideWork) {
    const reason =
      "The actions of X-Ray and of log delivery, which a traced and logged state machine needs, know no resource.";
    acceptResource(stateMachine, "*", reason);
  }
  return stateMachine;
}

function logGroupOf(
  scope: Construct,
  { logRetention = RetentionDays.ONE_MONTH }: ObservabilityProps,
): LogGroup {
  return new LogGroup(scope, "Logs", {
    logGroupName: logGroupName(scope),
    retention: logRetention,
    removalPolicy: RemovalPolicy.DESTROY,
  });
}

/**
 * Names the log group of a state machine. Under this prefix CloudWatch Logs keeps one entry for all log groups in the
 * account's resource policy, which is limited to 5,120 characters
 * (https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html).
 *
 * Stable, and unique in the account and region: by the stack's name and the construct's path. At most 192 characters,
 * because the log group's ARN may have 256 in a state machine.
 */
function logGroupName(scope: Construct): string {
  const inStack = Names.uniqueResourceName(scope, { maxLength: 40, separator: "-" });
  return `/aws/vendedlogs/states/${Stack.of(scope).stackName}-${inStack}`;
}

/**
 * The permission to read what executions of a state machine return, if a key of KMS encrypts that. None for a machine
 * that another app defines, because its key is not known.
 */
export function mayReadOutput(machine: IStateMachine): readonly PolicyStatement[] {
  const { encryptionConfiguration } = (machine.node.defaultChild ?? {}) as Partial<CfnStateMachine>;
  const { kmsKeyId } = (encryptionConfiguration ?? {}) as { readonly kmsKeyId?: string };
  if (kmsKeyId === undefined) return [];
  const context = { "kms:EncryptionContext:aws:states:stateMachineArn": machine.stateMachineArn };
  return [
    new PolicyStatement({
      actions: ["kms:Decrypt"],
      resources: [kmsKeyId],
      conditions: { StringEquals: context },
    }),
  ];
}

/** Each metric counts executions that ended without success. */
export function failuresOf(
  stateMachine: IStateMachine,
): Readonly<Record<"failed" | "timedOut" | "aborted", Metric>> {
  return {
    failed: stateMachine.metricFailed(),
    timedOut: stateMachine.metricTimedOut(),
    aborted: stateMachine.metricAborted(),
  };
}
