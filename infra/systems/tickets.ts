import { type ILeaseTable, InvokeFunction } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Schedule, ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Construct } from "constructs";
import {
  agentsVariable,
  cleaningKey,
  departmentAgents,
  departmentKeyPrefix,
  departmentLimits,
  limitsVariable,
  silenceVariable,
  usualServiceVariable,
} from "../../functions/admit-tickets/schema.ts";
import { CalledFunctionAlarms, ScheduledFunctionAlarm } from "../alarms.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";

/** Properties of {@link Tickets}. */
export interface TicketsProps {
  readonly leases: ILeaseTable;
  readonly pace: Pace;
  /** How many may wait in each line of a department, from 1 to 500, by its name. @default - 10 at each */
  readonly departments?: Readonly<Record<string, number>> | undefined;
  /** How many agents serve at a department, from 1 to 20, by its name. @default - 1 at each */
  readonly agents?: Readonly<Record<string, number>> | undefined;
  /** How long a ticket is usually in service. @default - no estimates */
  readonly usualService?: Duration | undefined;
}

/** Admission of service tickets: a department's agents, its bounded lines of appointments and walk-ins, and a cleaner. */
export class Tickets extends Construct {
  constructor(scope: Construct, id: string, props: TicketsProps) {
    super(scope, id);
    const { leases, pace, departments = {}, agents = {}, usualService } = props;
    const [limits, agentNumbers] = [JSON.stringify(departments), JSON.stringify(agents)];
    // Refused here, and not by each invocation.
    departmentLimits(limits);
    departmentAgents(agentNumbers);
    const scopeOfKeys = { keyPrefixes: [departmentKeyPrefix] };
    const admission = new Handler(this, "Admission", {
      entry: "admit-tickets/handler.ts",
      description: "Admits service tickets, first come, first served.",
      timeout: Duration.seconds(30),
      leases,
      environment: {
        [silenceVariable]: String(pace.ticketSilence.toMilliseconds()),
        [limitsVariable]: limits,
        [agentsVariable]: agentNumbers,
        ...(usualService && { [usualServiceVariable]: String(usualService.toMilliseconds()) }),
      },
    });
    leases.grants.useLeases(admission, scopeOfKeys);
    new CalledFunctionAlarms(this, "AdmissionAlarms", { fn: admission });

    // A function of its own: a list reads the whole table, and the admission does not need that permission.
    const cleaner = new Handler(this, "Cleaner", {
      entry: "admit-tickets/cleaner.ts",
      description: "Frees the agents whose tickets have not been heard of.",
      timeout: Duration.minutes(1),
      leases,
    });
    leases.grants.useLeases(cleaner, scopeOfKeys);
    leases.grants.listLeases(cleaner);
    leases.grants.usePrimitives(cleaner, { keys: [cleaningKey] });
    // Cleaning twice does no harm: no lock is needed.
    new Schedule(this, "Cleaning", {
      description: "Frees the agents whose tickets have not been heard of.",
      schedule: ScheduleExpression.rate(pace.cleaning),
      target: new InvokeFunction(cleaner, { retryAttempts: 0 }),
    });
    new ScheduledFunctionAlarm(this, "CleanerAlarm", { fn: cleaner, interval: pace.cleaning });
  }
}
