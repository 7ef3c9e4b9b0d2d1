import {
  type ILeaseTable,
  LeasedWorkflow,
  type LeaseHeartbeat,
  type LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { acceptanceJobKey, acceptanceWorkflowKey } from "../functions/acceptance/schema.ts";
import { Handler } from "./handler.ts";

/** What acceptance works with. */
export interface AcceptanceProps {
  readonly leases: ILeaseTable;
  readonly heartbeat: LeaseHeartbeat;
  readonly wakeup: LeaseWakeup;
}

/**
 * A singleton job and a leased workflow for `npm run evidence -- acceptance` to run, under keys of their own.
 *
 * They do no work and touch no data. The schedule is off: at rest they cost nothing.
 */
export class Acceptance extends Construct {
  readonly run: Handler;
  readonly workflow: LeasedWorkflow;

  constructor(scope: Construct, id: string, props: AcceptanceProps) {
    super(scope, id);
    const { leases, heartbeat, wakeup } = props;
    this.run = new Handler(this, "Run", {
      entry: "acceptance/handler.ts",
      description: "Holds a lock for a while, so that a deployment can be checked.",
      timeout: Duration.seconds(20),
    });
    new SingletonJob(this, "Job", {
      table: leases,
      jobName: "acceptance",
      key: acceptanceJobKey,
      schedule: ScheduleExpression.rate(Duration.days(1)),
      enabled: false,
      alarms: false,
      target: SingletonJobTarget.lambda(this.run),
    });
    this.workflow = new LeasedWorkflow(this, "Workflow", {
      table: leases,
      key: acceptanceWorkflowKey,
      work: Wait.jsonata(this, "Hold", { time: WaitTime.duration(Duration.seconds(3)) }),
      leaseDuration: Duration.seconds(6),
      whenHeld: "wait",
      waitFor: Duration.minutes(2),
      heartbeat,
      wakeup,
    });
  }
}
