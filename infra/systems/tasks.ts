import { type ILeaseTable, InvokeFunction } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Schedule, ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Construct } from "constructs";
import {
  backoffVariable,
  claimVariable,
  tableVariable,
  taskKeyPrefix,
} from "../../functions/claim-tasks/schema.ts";
import { CalledFunctionAlarms, ScheduledFunctionAlarm } from "../alarms.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/**
 * Sets of tasks in the lease table; one worker claims each task, among any number of invocations. A schedule starts a
 * worker for every set that has tasks.
 */
export class Tasks extends Construct {
  constructor(scope: Construct, id: string, props: { readonly leases: ILeaseTable; readonly pace: Pace }) {
    super(scope, id);
    const { leases, pace } = props;
    const register = new SystemTable(this, "Register");
    const handler = (name: string, entry: string, description: string): Handler => {
      const made = new Handler(this, name, {
        entry: `claim-tasks/${entry}`,
        description,
        timeout: Duration.minutes(5),
        leases,
        environment: {
          [tableVariable]: register.tableName,
          [claimVariable]: String(pace.taskClaim.toMilliseconds()),
          [backoffVariable]: String(pace.taskBackoff.toMilliseconds()),
        },
      });
      leases.grants.usePrimitives(made, { keyPrefixes: [taskKeyPrefix] });
      return made;
    };
    const worker = handler(
      "Worker",
      "handler.ts",
      "Adds tasks to a set, or claims them one by one and does them.",
    );
    register.permit(worker, "PutItem");
    new CalledFunctionAlarms(this, "WorkerAlarms", { fn: worker });

    const restart = handler("Restart", "restart.ts", "Works on every set that has tasks.");
    register.permit(restart, "Query", "DeleteItem");
    // Two runs at once share the tasks as all workers do: no lock is needed.
    new Schedule(this, "Restarting", {
      description: "Starts a worker for every set that has tasks.",
      schedule: ScheduleExpression.rate(pace.taskRestart),
      target: new InvokeFunction(restart, { retryAttempts: 0 }),
    });
    new ScheduledFunctionAlarm(this, "RestartAlarm", { fn: restart, interval: pace.taskRestart });
  }
}
