import {
  LeasedWorkflow,
  LeaseHeartbeat,
  LeaseTable,
  type ObservabilityProps,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { LogLevel, Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack } from "../support/constructs.ts";
import { definitionsIn, problemsIn } from "../support/definitions.ts";

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

/** The properties of the resources that the construct has made; what serves the whole stack is not its own. */
function ownIn(template: Template, type: string): Record<string, unknown>[] {
  const resources = Object.entries(template.findResources(type)).filter(([id]) => id.startsWith("It"));
  return resources.map(([, { Properties }]) => Properties);
}

describe.each(makers)("%s", (_, make) => {
  function templateOf(propsIn: (stack: Stack) => ObservabilityProps = () => ({})): Template {
    const stack = newStack({});
    make(stack, new LeaseTable(stack, "Leases"), propsIn(stack));
    return Template.fromStack(stack);
  }

  test.each<[string, (stack: Stack) => ObservabilityProps, object | undefined, boolean, number[]]>([
    ["by default logs all but data, for a month, and is traced", () => ({}), { Level: "ALL" }, true, [30]],
    [
      "takes the user's level, retention and tracing for each of its state machines",
      () => ({ logLevel: LogLevel.ERROR, logRetention: RetentionDays.ONE_YEAR, tracing: false }),
      { Level: "ERROR" },
      false,
      [365],
    ],
    [
      "takes the user's log group for all, and makes none",
      (stack) => ({ logGroup: new LogGroup(stack, "Mine") }),
      {
        Destinations: [
          {
            CloudWatchLogsLogGroup: {
              LogGroupArn: { "Fn::GetAtt": [expect.stringMatching(/^Mine/), "Arn"] },
            },
          },
        ],
      },
      true,
      [],
    ],
    ["has no log group where nothing is logged", () => ({ logLevel: LogLevel.OFF }), undefined, true, []],
  ])("%s", (_what, propsIn, logging, isTraced, retentions) => {
    const template = templateOf(propsIn);
    const machines = ownIn(template, "AWS::StepFunctions::StateMachine");
    expect(machines.length).toBeGreaterThan(0);
    for (const { LoggingConfiguration, TracingConfiguration } of machines) {
      const expected = logging && expect.objectContaining({ IncludeExecutionData: false, ...logging });
      expect(LoggingConfiguration).toEqual(expected);
      expect(TracingConfiguration).toEqual({ Enabled: isTraced });
    }
    const groups = ownIn(template, "AWS::Logs::LogGroup");
    expect([...new Set(groups.map(({ RetentionInDays }) => RetentionInDays))]).toEqual(retentions);
  });

  test("refuses a retention for a log group that somebody else has made", () => {
    const logRetention = RetentionDays.ONE_DAY;
    expect(() => templateOf((stack) => ({ logGroup: new LogGroup(stack, "Mine"), logRetention }))).toThrow(
      "logRetention is set beside logGroup, which has a retention of its own: set it there, or leave logGroup out",
    );
  });
});

describe("a workflow's timeout", () => {
  const workflowOf = (timeout?: Duration): unknown[] => {
    const stack = newStack({});
    const table = new LeaseTable(stack, "Leases");
    const work = new Pass(stack, "Nothing");
    new LeasedWorkflow(stack, "Import", { table, work, ...(timeout ? { timeout } : {}) });
    const template = Template.fromStack(stack);
    expect(problemsIn(template)).toEqual([]);
    return Object.entries(definitionsIn(template)).flatMap(([id, definition]) =>
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
