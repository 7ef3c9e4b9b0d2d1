import {
  alarmOnEvent,
  alarmOnRedriveGuard,
  LeaseDashboard,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseTableAlarms,
} from "@leasehold/cdk";
import { CfnOutput, Duration, Stack, type StackProps } from "aws-cdk-lib";
import { Stats } from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";
import { acceptanceWorkflowKey } from "../functions/acceptance/schema.ts";
import { transferKey } from "../functions/import-orders/schema.ts";
import { Acceptance } from "./acceptance.ts";
import { systemAlarmText } from "./alarms.ts";
import { LeaseFunctions, sharedKeyPrefix } from "./lease-functions.ts";
import { deployedPace, type Pace } from "./pace.ts";
import { Imports } from "./systems/imports.ts";
import { StockLevels } from "./systems/stock-levels.ts";
import { Tasks } from "./systems/tasks.ts";
import { Tickets } from "./systems/tickets.ts";
import { UnpaidOrders } from "./systems/unpaid-orders.ts";

/** Properties of {@link LeaseholdStack}. */
export interface LeaseholdStackProps extends StackProps {
  /** @default - the pace of a deployment */
  readonly pace?: Pace;
  /** How many tickets may wait in each line of a department, from 1 to 500, by its name. @default - 10 at each */
  readonly departments?: Readonly<Record<string, number>>;
  /** How many agents serve tickets at a department, from 1 to 20, by its name. @default - 1 at each */
  readonly ticketAgents?: Readonly<Record<string, number>>;
  /** How long a ticket is usually in service: waits are estimated by it. @default - no estimates */
  readonly usualTicketService?: Duration;
  /** How long after its payment was due an unpaid order is closed: whole hours, up to 366 days. @default Duration.hours(0) */
  readonly closeUnpaidOrdersAfter?: Duration;
  /** How long a caller may wait for a lock before an alarm tells of it; above 0. @default Duration.minutes(10) */
  readonly longestWait?: Duration;
}

/** The whole app: a lease table, the functions about leases, and five systems that use them. */
export class LeaseholdStack extends Stack {
  constructor(scope: Construct, id: string, props: LeaseholdStackProps = {}) {
    const {
      pace = deployedPace,
      departments,
      ticketAgents,
      usualTicketService,
      closeUnpaidOrdersAfter,
      longestWait = Duration.minutes(10),
      ...stackProps
    } = props;
    super(scope, id, {
      description: "Leasehold: leases on DynamoDB, and what stands on them.",
      ...stackProps,
    });
    const leases = new LeaseTable(this, "Leases", { stream: true });
    const functions = new LeaseFunctions(this, "LeaseFunctions", leases);
    // It keeps the leases of the app's own workflows, and leases that callers take by the functions about leases.
    const heartbeat = new LeaseHeartbeat(this, "Heartbeat", {
      table: leases,
      scope: { keys: [transferKey, acceptanceWorkflowKey], keyPrefixes: [sharedKeyPrefix] },
    });

    const { job } = new UnpaidOrders(this, "UnpaidOrders", {
      leases,
      pace,
      closeAfter: closeUnpaidOrdersAfter,
    });
    const { workflow } = new Imports(this, "Imports", { leases, heartbeat, wakeup: functions.wakeup, pace });
    new StockLevels(this, "StockLevels", { leases });
    new Tasks(this, "Tasks", { leases, pace });
    new Tickets(this, "Tickets", {
      leases,
      pace,
      departments,
      agents: ticketAgents,
      usualService: usualTicketService,
    });

    const acceptance = new Acceptance(this, "Acceptance", { leases, heartbeat, wakeup: functions.wakeup });

    new LeaseTableAlarms(this, "Alarms", { table: leases });
    const longWait = `A caller waited for a lock in ${leases.tableName} for ${longestWait.toHumanString()} or longer.`;
    // The longest of all waits: among the many grants without a wait, a percentile would hide it. And a single one counts:
    // the longer callers wait, the fewer of them get the lock within the time that an alarm looks back on.
    alarmOnEvent(this, "LongWait", {
      ...systemAlarmText("longWaits", longWait),
      metrics: { wait: leases.metricWaitTime({ statistic: Stats.MAXIMUM }) },
      threshold: longestWait.toMilliseconds(),
    });
    new LeaseHeartbeatAlarms(this, "HeartbeatAlarms", { heartbeat });
    alarmOnRedriveGuard(workflow.redriveGuard);
    const { dashboard } = new LeaseDashboard(this, "Dashboard", {
      tables: [leases],
      jobs: [job],
      workflows: [workflow.stateMachine, heartbeat.stateMachine],
    });

    const { acquire, renew, release } = functions;
    const outputs = {
      LeaseTableName: [leases.tableName, "The client's LEASEHOLD_TABLE_NAME."],
      AcquireFunctionName: [acquire.functionName, "Takes a lock for somebody without a client."],
      RenewFunctionName: [renew.functionName, "Prolongs a lease for somebody without a client."],
      ReleaseFunctionName: [release.functionName, "Lets a lock go for somebody without a client."],
      ImportWorkflowArn: [workflow.stateMachine.stateMachineArn, "Imports orders under the lock."],
      HeartbeatArn: [heartbeat.stateMachine.stateMachineArn, "Keeps a lease for anybody."],
      AcceptanceFunctionName: [acceptance.run.functionName, "The job that acceptance triggers."],
      AcceptanceWorkflowArn: [
        acceptance.workflow.stateMachine.stateMachineArn,
        "The workflow that acceptance starts.",
      ],
      DashboardName: [dashboard.dashboardName, "Where CloudWatch shows all of it."],
    } as const;
    for (const [id, [value, description]] of Object.entries(outputs))
      new CfnOutput(this, id, { value, description });
  }
}
