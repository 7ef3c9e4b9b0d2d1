import {
  alarmOnSilence,
  LeasedWorkflow,
  LeasedWorkflowAlarms,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import type { CloudFormationTemplate } from "../support/cloudformation.ts";
import { everyFiveMinutes, functionIn, newStack } from "../support/constructs.ts";
import { unwatched } from "../support/unwatched.ts";

/** What nobody would hear of in a stack. */
function missing(stack: Stack): string[] {
  return unwatched(Template.fromStack(stack).toJSON() as CloudFormationTemplate, []);
}

function alarmsOf(stack: Stack): Record<string, string>[] {
  const found = Object.values(Template.fromStack(stack).findResources("AWS::CloudWatch::Alarm"));
  return found.map(({ Properties }) => Properties);
}

const oncall: IAlarmAction = {
  bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:oncall" }),
};

describe("a leased workflow's alarms", () => {
  interface Parts {
    readonly stack: Stack;
    readonly workflow: LeasedWorkflow;
    readonly heartbeat: LeaseHeartbeat | undefined;
  }

  function leased({ isShared }: { readonly isShared: boolean }): Parts {
    const stack = newStack();
    const table = new LeaseTable(stack, "Leases");
    const heartbeat = isShared ? new LeaseHeartbeat(stack, "Heartbeat", { table }) : undefined;
    const workflow = new LeasedWorkflow(stack, "Import", {
      table,
      key: "import",
      work: new Pass(stack, "Pass"),
      ...(heartbeat ? { heartbeat } : {}),
    });
    return { stack, workflow, heartbeat };
  }

  test("watch the workflow and the keeper that the stack has for its table", () => {
    expect(missing(leased({ isShared: false }).stack)).toHaveLength(12);
    const { stack, workflow } = leased({ isShared: false });
    const runbookUrl = "https://wiki.example";
    new LeasedWorkflowAlarms(stack, "Alarms", { workflow, actions: [oncall], runbookUrl });
    expect(missing(stack)).toEqual([]);
    for (const { AlarmActions, AlarmDescription } of alarmsOf(stack)) {
      expect(AlarmActions).toEqual(["arn:aws:sns:eu-west-1:111122223333:oncall"]);
      expect(AlarmDescription).toMatch(
        /\nRunbook: https:\/\/wiki\.example#(failed|keeper-failed|keeper-throttled|redrive-guard-failed)$/,
      );
    }
  });

  test("leave a keeper that others use, too, to the alarms of its own", () => {
    const alone = leased({ isShared: true });
    const { keeper } = new LeasedWorkflowAlarms(alone.stack, "Alarms", { workflow: alone.workflow });
    expect(keeper).toBeUndefined();
    expect(missing(alone.stack).map((text) => text.split(":")[0])).toEqual(
      Array(6).fill(expect.stringMatching(/^Heartbeat/)),
    );
    const { stack, workflow, heartbeat } = leased({ isShared: true });
    new LeasedWorkflowAlarms(stack, "Alarms", { workflow });
    if (heartbeat) new LeaseHeartbeatAlarms(stack, "KeeperAlarms", { heartbeat });
    expect(missing(stack)).toEqual([]);
  });
});

test("the guard of redriven workflows has one alarm in a stack, which tells each of those once whom any workflow's alarms tell", () => {
  const stack = newStack();
  const table = new LeaseTable(stack, "Leases");
  const heartbeat = new LeaseHeartbeat(stack, "Heartbeat", { table });
  const others: IAlarmAction = {
    bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:others" }),
  };
  for (const [id, actions] of [
    ["One", [oncall]],
    ["Two", [oncall, others]],
    ["Three", [others]],
  ] as const) {
    const work = new Pass(stack, `Pass${id}`);
    const workflow = new LeasedWorkflow(stack, id, { table, key: id, work, heartbeat });
    new LeasedWorkflowAlarms(stack, `${id}Alarms`, { workflow, actions: [...actions] });
  }
  const guards = alarmsOf(stack).filter(({ AlarmDescription }) => AlarmDescription?.includes("redriven"));
  expect(guards).toHaveLength(1);
  expect(guards[0]?.AlarmActions).toEqual([
    "arn:aws:sns:eu-west-1:111122223333:oncall",
    "arn:aws:sns:eu-west-1:111122223333:others",
  ]);
});

test("an alarm on a longer silence than CloudWatch can see is refused", () => {
  const stack = newStack();
  const metrics = { invocations: functionIn(stack, "Work").metricInvocations() };
  const terms = { description: "Silence.", metrics, longest: Duration.days(7) };
  expect(() => alarmOnSilence(stack, "Silence", terms)).toThrow(
    "longest is 7 days, but an alarm can watch for 6 days of silence at most: shorten it, or watch what happens so rarely " +
      "by its failures",
  );
});

describe("a job that queues", () => {
  function queuing(own: { readonly keeper?: boolean; readonly alarms?: boolean } = {}): Stack {
    const stack = newStack();
    const table = new LeaseTable(stack, "Leases", { stream: true });
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
    new LeaseWakeupAlarms(stack, "WakeupAlarms", { wakeup });
    const keeper = own.keeper ? new LeaseHeartbeat(stack, "Keeper", { table }) : undefined;
    new SingletonJob(stack, "Job", {
      table,
      wakeup,
      overlap: "queue",
      schedule: everyFiveMinutes,
      target: SingletonJobTarget.lambda(functionIn(stack, "Work")),
      ...(keeper ? { keeper } : {}),
      ...(own.alarms === undefined ? {} : { alarms: own.alarms }),
    });
    return stack;
  }
  const others = (texts: string[]): string[] => texts.filter((text) => !text.startsWith("Work"));

  const parts = (texts: string[]): string[] => texts.map((text) => text.split(":")[0] ?? "");

  test("has alarms for the workflow in which its runs wait, the keeper of that, and wake-ups, but for what others use", () => {
    expect(others(missing(queuing()))).toEqual([]);
    const shared = parts(others(missing(queuing({ keeper: true }))));
    expect(shared).toEqual(Array(6).fill(expect.stringMatching(/^Keeper/)));
    // Turned off: the workflow, its keeper, what hears of ends, what stops redriven runs, and the dead-letter queue.
    expect(new Set(parts(others(missing(queuing({ alarms: false })))))).toHaveProperty("size", 5);
  });
});
