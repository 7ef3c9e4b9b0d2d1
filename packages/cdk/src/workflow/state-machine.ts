import { RemovalPolicy, Stack } from "aws-cdk-lib";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { DefinitionBody, LogLevel, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import type { Definition } from "./asl.ts";

/** Makes a state machine of a definition, logged and traced. Logs carry no data: an input may bear a lease's token. */
export function stateMachineOf(scope: Construct, definition: Definition): StateMachine {
  return new StateMachine(scope, "StateMachine", {
    definitionBody: DefinitionBody.fromString(Stack.of(scope).toJsonString(definition)),
    logs: {
      destination: new LogGroup(scope, "Logs", {
        retention: RetentionDays.ONE_MONTH,
        removalPolicy: RemovalPolicy.DESTROY,
      }),
      level: LogLevel.ALL,
      includeExecutionData: false,
    },
    tracingEnabled: true,
  });
}
