// CloudFormation replaces what gets another logical id: a table with its leases, a keeper in the middle of its work.
import {
  LeasedWorkflow,
  LeaseHistory,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { expect, test } from "vitest";
import { everyFiveMinutes, functionIn, newStack } from "../support/constructs.ts";

/** Resources that hold data, that are in the middle of something, or that are told apart by their names. */
const kinds = /::(GlobalTable|Table|StateMachine|Schedule|Queue|LogGroup|Alarm)$/;

test("the logical ids of tables, state machines, schedules, queues and alarms stay as they are", () => {
  const stack = newStack();
  const table = new LeaseTable(stack, "Leases", { stream: true });
  new LeasedWorkflow(stack, "Workflow", { table, work: new Pass(stack, "Pass") });
  new LeaseWakeup(stack, "Wakeup", { table });
  new LeaseHistory(stack, "History", { table, keepFor: Duration.days(30) });
  new SingletonJob(stack, "Job", {
    table,
    schedule: everyFiveMinutes,
    target: SingletonJobTarget.lambda(functionIn(stack)),
    jobName: "close-unpaid-orders",
  });
  const { Resources } = Template.fromStack(stack).toJSON() as {
    readonly Resources: Readonly<Record<string, { readonly Type: string }>>;
  };
  const ids = Object.entries(Resources)
    .filter(([, { Type }]) => kinds.test(Type))
    .map(([id, { Type }]) => `${Type} ${id}`);
  expect(ids.sort()).toMatchInlineSnapshot(`
    [
      "AWS::CloudWatch::Alarm JobAlarmsDeadLetterLost6EAC501C",
      "AWS::CloudWatch::Alarm JobAlarmsDeadLetters57B26AA9",
      "AWS::CloudWatch::Alarm JobAlarmsDidNotRun89F41CC5",
      "AWS::CloudWatch::Alarm JobAlarmsFailedD755D603",
      "AWS::CloudWatch::Alarm JobAlarmsLostLease4172AC07",
      "AWS::CloudWatch::Alarm JobAlarmsSkippedInARow8D51F242",
      "AWS::DynamoDB::GlobalTable Leases507C2787",
      "AWS::Logs::LogGroup HistoryHandlerLogs49F34B2A",
      "AWS::Logs::LogGroup LeaseholdHeartbeat8d7ced2dEndedLogs42C29580",
      "AWS::Logs::LogGroup LeaseholdHeartbeat8d7ced2dLogs6CF4A046",
      "AWS::Logs::LogGroup LeaseholdRedriveGuardLogsE9EDE6D5",
      "AWS::Logs::LogGroup WakeupHandlerLogs4AA72447",
      "AWS::Logs::LogGroup WorkflowLogs8B0907C7",
      "AWS::SQS::Queue HistoryDeadLettersBAF9EBDC",
      "AWS::SQS::Queue JobDeadLetters365C97E6",
      "AWS::SQS::Queue WakeupDeadLetters57F1ADA9",
      "AWS::Scheduler::Schedule JobSchedule20627B1E",
      "AWS::StepFunctions::StateMachine LeaseholdHeartbeat8d7ced2dEndedStateMachine9DD6372E",
      "AWS::StepFunctions::StateMachine LeaseholdHeartbeat8d7ced2dStateMachineEDE3790D",
      "AWS::StepFunctions::StateMachine LeaseholdRedriveGuardStateMachineF13B6BAB",
      "AWS::StepFunctions::StateMachine WorkflowStateMachine8F1B1C15",
    ]
  `);
});
