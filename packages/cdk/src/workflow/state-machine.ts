import { RemovalPolicy, Stack } from "aws-cdk-lib";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { DefinitionBody, LogLevel, type LogOptions, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import type { Definition } from "./asl.ts";
import { checkObservability, type ObservabilityProps } from "./observability.ts";

/** Makes a state machine of a definition, logged and traced. Logs carry no data: an input may bear a lease's token. */
export function stateMachineOf(
  scope: Construct,
  definition: Definition,
  options: ObservabilityProps = {},
): StateMachine {
  checkObservability(options);
  const { logLevel = LogLevel.ALL, logGroup, tracing = true } = options;
  const logs = (): LogOptions => ({
    destination: logGroup ?? logGroupOf(scope, options),
    level: logLevel,
    includeExecutionData: false,
  });
  return new StateMachine(scope, "StateMachine", {
    definitionBody: DefinitionBody.fromString(Stack.of(scope).toJsonString(definition)),
    ...(logLevel === LogLevel.OFF ? {} : { logs: logs() }),
    tracingEnabled: tracing,
  });
}

function logGroupOf(
  scope: Construct,
  { logRetention = RetentionDays.ONE_MONTH }: ObservabilityProps,
): LogGroup {
  return new LogGroup(scope, "Logs", { retention: logRetention, removalPolicy: RemovalPolicy.DESTROY });
}
