import {
  LeasedWorkflow,
  LeaseHeartbeat,
  LeaseTable,
  type ObservabilityProps,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { definitionProblems } from "@leasehold/local/definitions";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { LogLevel, Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack } from "../support/constructs.ts";
import { definitionsIn } from "../support/definitions.ts";

type Make = (stack: Stack, table: LeaseTable, props: ObservabilityProps) => unknown;

const makers: readonly [string, Make][] = [
  ["a heartbeat", (stack, table, props) => new LeaseHeartbeat(stack, "It", { table, ...props })],
  [
    "a workflow and its own heartbeat",
    (stack, table, props) =>
      new LeasedWorkflow(stack, "It", { table, work: new Pass(stack, "Nothing"), ...props }),
  ],
  [
    "a job of a locked function",
    (stack, table, props) => {
      const target = SingletonJobTarget.lockedLambda(functionIn(stack));
      new SingletonJob(stack, "It", { table, target, schedule: everyFiveMinutes, ...props });
    },
  ],
];

interface Machine {
  readonly LoggingConfiguration?: {
    readonly Level: string;
    readonly IncludeExecutionData: boolean;
    readonly Destinations: readonly { readonly CloudWatchLogsLogGroup: { readonly LogGroupArn: unknown } }[];
  };
  readonly TracingConfiguration?: { readonly Enabled: boolean };
}

/** The properties of the resources that the construct has made; what serves the whole stack is not its own. */
function ownIn<Properties>(template: Template, type: string): Properties[] {
  const resources = Object.entries(template.findResources(type)).filter(([id]) => id.startsWith("It"));
  return resources.map(([, resource]) => resource.Properties as Properties);
}

const logGroupsOf = (template: Template): { readonly RetentionInDays?: number }[] =>
  ownIn(template, "AWS::Logs::LogGroup");

function machinesOf(template: Template): Machine[] {
  const machines = ownIn<Machine>(template, "AWS::StepFunctions::StateMachine");
  expect(machines.length).toBeGreaterThan(0);
  return machines;
}

describe.each(makers)("%s", (_, make) => {
  function templateOf(propsIn: (stack: Stack) => ObservabilityProps = () => ({})): Template {
    const stack = newStack({});
    make(stack, new LeaseTable(stack, "Leases"), propsIn(stack));
    return Template.fromStack(stack);
  }

  const retentions = (template: Template): unknown[] => [
    ...new Set(logGroupsOf(template).map(({ RetentionInDays }) => RetentionInDays)),
  ];

  test("by default logs all but data, for a month, and is traced", () => {
    const template = templateOf();
    for (const machine of machinesOf(template)) {
      expect(machine.LoggingConfiguration).toMatchObject({ Level: "ALL", IncludeExecutionData: false });
      expect(machine.TracingConfiguration).toEqual({ Enabled: true });
    }
    expect(retentions(template)).toEqual([30]);
  });

  test("takes the user's level, retention and tracing for each of its state machines", () => {
    const template = templateOf(() => ({
      logLevel: LogLevel.ERROR,
      logRetention: RetentionDays.ONE_YEAR,
      tracing: false,
    }));
    for (const machine of machinesOf(template)) {
      expect(machine.LoggingConfiguration).toMatchObject({ Level: "ERROR", IncludeExecutionData: false });
      expect(machine.TracingConfiguration?.Enabled ?? false).toBe(false);
    }
    expect(retentions(template)).toEqual([365]);
  });

  test("takes the user's log group for all, and makes none", () => {
    const template = templateOf((stack) => ({ logGroup: new LogGroup(stack, "Mine") }));
    expect(logGroupsOf(template)).toEqual([]);
    for (const { LoggingConfiguration } of machinesOf(template)) {
      expect(LoggingConfiguration?.Destinations).toEqual([
        {
          CloudWatchLogsLogGroup: { LogGroupArn: { "Fn::GetAtt": [expect.stringMatching(/^Mine/), "Arn"] } },
        },
      ]);
    }
  });

  test("has no log group where nothing is logged", () => {
    const template = templateOf(() => ({ logLevel: LogLevel.OFF }));
    expect(logGroupsOf(template)).toEqual([]);
    for (const machine of machinesOf(template)) expect(machine.LoggingConfiguration).toBeUndefined();
  });

  test("refuses a retention for a log group that somebody else has made", () => {
    const props = (stack: Stack): ObservabilityProps => ({
      logGroup: new LogGroup(stack, "Mine"),
      logRetention: RetentionDays.ONE_DAY,
    });
    expect(() => templateOf(props)).toThrow(
      "logRetention is set beside logGroup, which has a retention of its own: set it there, or leave logGroup out",
    );
  });
});

describe("a job that makes no state machine", () => {
  test.each<ObservabilityProps>([{ logLevel: LogLevel.ERROR }, { tracing: false }])("refuses %o", (props) => {
    const stack = newStack({});
    const table = new LeaseTable(stack, "Leases");
    const target = SingletonJobTarget.lambda(functionIn(stack));
    expect(
      () => new SingletonJob(stack, "Job", { table, target, schedule: everyFiveMinutes, ...props }),
    ).toThrow(
      `${Object.keys(props)[0]} is set, but the job makes no state machine: set it on the function or the workflow that it runs`,
    );
  });
});

describe("a workflow's timeout", () => {
  const workflowOf = (timeout?: Duration): unknown[] => {
    const stack = newStack({});
    const table = new LeaseTable(stack, "Leases");
    const work = new Pass(stack, "Nothing");
    new LeasedWorkflow(stack, "Import", { table, work, ...(timeout ? { timeout } : {}) });
    const definitions = Object.entries(definitionsIn(Template.fromStack(stack)));
    for (const [, definition] of definitions) expect(definitionProblems(definition)).toEqual([]);
    return definitions.flatMap(([id, definition]) =>
      id.startsWith("ImportStateMachine") ? [(definition as { TimeoutSeconds?: number }).TimeoutSeconds] : [],
    );
  };

  test("ends an execution, there is none by default, and it has to be a second at least", () => {
    expect(workflowOf(Duration.minutes(90))).toEqual([5_400]);
    expect(workflowOf()).toEqual([undefined]);
    expect(() => workflowOf(Duration.seconds(0))).toThrow(
      "timeout is 0 seconds: choose from 1 second to 365 days",
    );
  });
});
