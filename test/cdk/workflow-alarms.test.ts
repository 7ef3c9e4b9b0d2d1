import {
  alarmOnSilence,
  LeasedWorkflowAlarms,
  LeaseHeartbeat,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import type { IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { describe, expect, test } from "vitest";
import { decisionOf } from "../support/alarms.ts";
import { everyFiveMinutes, functionIn, newStack, tableIn, workflowIn } from "../support/constructs.ts";

function alarmsOf(stack: Stack): Record<string, string>[] {
  const found = Object.values(Template.fromStack(stack).findResources("AWS::CloudWatch::Alarm"));
  return found.map(({ Properties }) => Properties);
}

/** What watches a stack: its alarms by their logical ids, without hashes. */
function watching(stack: Stack): string[] {
  const ids = Object.keys(Template.fromStack(stack).findResources("AWS::CloudWatch::Alarm"));
  return ids.map((id) => id.slice(0, -8).replace(/^(LeaseholdHeartbeat)\w{8}/, "$1")).sort();
}

function keeperIn(stack: Stack): LeaseHeartbeat {
  return new LeaseHeartbeat(stack, "Heartbeat", { table: tableIn(stack) });
}

const oncall: IAlarmAction = {
  bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:oncall" }),
};

describe("a leased workflow's alarms", () => {
  function leased(hasOwnKeeper = false): Stack {
    const stack = newStack();
    const workflow = workflowIn(stack, hasOwnKeeper ? { heartbeat: keeperIn(stack) } : {});
    const runbookUrl = "https://wiki.example";
    new LeasedWorkflowAlarms(stack, "Alarms", { workflow, actions: [oncall], runbookUrl });
    return stack;
  }

  test("watch the workflow, what stops it after a redrive, and the keeper that the stack has for its table", () => {
    const stack = leased();
    expect(watching(stack)).toEqual([
      "AlarmsFailed",
      "LeaseholdHeartbeatAlarmsFailed",
      "LeaseholdHeartbeatAlarmsThrottled",
      "LeaseholdRedriveGuardFailed",
    ]);
    for (const { AlarmActions, AlarmDescription } of alarmsOf(stack)) {
      expect(AlarmActions).toEqual(["arn:aws:sns:eu-west-1:111122223333:oncall"]);
      expect(AlarmDescription).toMatch(
        /\nRunbook: https:\/\/wiki\.example#(failed|keeper-failed|keeper-throttled|redrive-guard-failed)$/,
      );
    }
    const [workflow] = alarmsOf(stack).filter(({ AlarmDescription }) =>
      /Import failed/.test(String(AlarmDescription)),
    );
    expect(decisionOf(workflow ?? {})).toContain(
      "; failed = Sum ExecutionsFailed of ImportStateMachine, timedOut = Sum ExecutionsTimedOut of ImportStateMachine, aborted = Sum ExecutionsAborted of ImportStateMachine",
    );
  });

  test("leave a keeper that others use, too, to the alarms of its own", () => {
    const stack = leased(true);
    expect(watching(stack)).toEqual(["AlarmsFailed", "LeaseholdRedriveGuardFailed"]);
  });
});

test("the guard of redriven workflows has one alarm in a stack, which tells each of those once whom any workflow's alarms tell", () => {
  const stack = newStack();
  const heartbeat = keeperIn(stack);
  const others: IAlarmAction = {
    bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:others" }),
  };
  for (const [id, actions] of [
    ["One", [oncall]],
    ["Two", [oncall, others]],
    ["Three", [others]],
  ] as const) {
    const workflow = workflowIn(stack, { heartbeat }, id);
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
    const table = tableIn(stack, true);
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionIn(stack, "Wake") });
    new LeaseWakeupAlarms(stack, "WakeupAlarms", { wakeup });
    const keeper = own.keeper ? keeperIn(stack) : undefined;
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
  test("has alarms for the workflow in which its runs wait, the keeper of that, and wake-ups, but for what others use", () => {
    const ofJob = ["DeadLetters", "DidNotRun", "Failed", "LostLease"].map((name) => `JobAlarms${name}`);
    const ofWakeup = ["DeadLetterLost", "DeadLetters", "Late"].map((name) => `WakeupAlarms${name}`);
    const ofKeeper = ["LeaseholdHeartbeatAlarmsFailed", "LeaseholdHeartbeatAlarmsThrottled"];
    const ofGuard = "LeaseholdRedriveGuardFailed";
    expect(watching(queuing())).toEqual([...ofJob, ...ofKeeper, ofGuard, ...ofWakeup]);
    expect(watching(queuing({ keeper: true }))).toEqual([...ofJob, ofGuard, ...ofWakeup]);
    expect(watching(queuing({ alarms: false }))).toEqual(ofWakeup);
  });
});
