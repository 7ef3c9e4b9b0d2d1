// The names and ARNs of resources, in AWS's form. They are the same in every run.

import type { Json } from "./types.ts";

/** Where the resources pretend to be. */
export interface StackEnv {
  readonly partition: string;
  readonly region: string;
  readonly accountId: string;
  /** What queue URLs start with. */
  readonly queueBaseUrl: string;
}

/** What a resource of a type is known by. */
export interface Identity {
  /** What Ref gives. */
  readonly ref: string;
  readonly arn: string;
  /** What Fn::GetAtt gives, besides `Arn`. */
  readonly attributes?: Readonly<Record<string, Json>>;
}

/** How the resources of one type are named. */
interface Naming {
  /** The property that sets the physical name. */
  readonly nameProperty?: string;
  identify(name: string, env: StackEnv): Identity;
}

/** Every table's stream has the same label: the engine's own would differ from run to run. */
const streamLabel = "2026-01-01T00:00:00.000";

const table: Naming = {
  nameProperty: "TableName",
  identify(name, env) {
    const tableArn = arn(env, "dynamodb", `table/${name}`);
    return {
      ref: name,
      arn: tableArn,
      attributes: { StreamArn: `${tableArn}/stream/${streamLabel}`, TableId: name },
    };
  },
};

const namings: Readonly<Record<string, Naming>> = {
  "AWS::DynamoDB::Table": table,
  "AWS::DynamoDB::GlobalTable": table,
  "AWS::Lambda::Function": named("FunctionName", "lambda", (name) => `function:${name}`),
  "AWS::StepFunctions::StateMachine": {
    nameProperty: "StateMachineName",
    identify(name, env) {
      const machineArn = arn(env, "states", `stateMachine:${name}`);
      return { ref: machineArn, arn: machineArn, attributes: { Name: name } };
    },
  },
  "AWS::SQS::Queue": {
    nameProperty: "QueueName",
    identify(name, env) {
      const url = `${env.queueBaseUrl}/${env.accountId}/${name}`;
      return { ref: url, arn: arn(env, "sqs", name), attributes: { QueueName: name, QueueUrl: url } };
    },
  },
  "AWS::Scheduler::Schedule": named("Name", "scheduler", (name) => `schedule/default/${name}`),
  "AWS::Events::Rule": named("Name", "events", (name) => `rule/${name}`),
  "AWS::Logs::LogGroup": named("LogGroupName", "logs", (name) => `log-group:${name}:*`),
  "AWS::CloudWatch::Alarm": named("AlarmName", "cloudwatch", (name) => `alarm:${name}`),
  "AWS::IAM::Role": {
    nameProperty: "RoleName",
    identify: (name, { partition, accountId }) => ({
      ref: name,
      arn: `arn:${partition}:iam::${accountId}:role/${name}`,
      attributes: { RoleId: name },
    }),
  },
};

/** Tells how resources of a type are named; an unknown type gets an ARN of the usual form. */
export function namingOf(type: string): Naming {
  const service = type.split("::")[1]?.toLowerCase() ?? "unknown";
  return namings[type] ?? named(undefined, service, (name) => name);
}

function named(
  nameProperty: string | undefined,
  service: string,
  resource: (name: string) => string,
  attributes: (name: string) => Readonly<Record<string, Json>> = () => ({}),
): Naming {
  return {
    ...(nameProperty === undefined ? {} : { nameProperty }),
    identify: (name, env) => ({
      ref: name,
      arn: arn(env, service, resource(name)),
      attributes: attributes(name),
    }),
  };
}

function arn({ partition, region, accountId }: StackEnv, service: string, resource: string): string {
  return `arn:${partition}:${service}:${region}:${accountId}:${resource}`;
}
