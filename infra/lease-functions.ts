import {
  alarmOnBacklog,
  alarmOnEvent,
  alarmOnLasting,
  type LeaseTable,
  LeaseWakeup,
  LeaseWakeupAlarms,
} from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import { Stats } from "aws-cdk-lib/aws-cloudwatch";
import { EventBus } from "aws-cdk-lib/aws-events";
import { FilterCriteria, FilterRule, StartingPosition } from "aws-cdk-lib/aws-lambda";
import { DynamoEventSource, SqsDlq } from "aws-cdk-lib/aws-lambda-event-sources";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { systemAlarmText } from "./alarms.ts";
import { Handler } from "./handler.ts";

/** The keys that may be locked by invoking the lease functions: the keys of the app's own jobs are not among them. */
export const sharedKeyPrefix = "shared/";

/** A report may come days after the event, but the stream forgets it after one day. */
const latestReport = Duration.hours(1);

/** The functions about leases themselves: for callers without a client, and for the table's stream. */
export class LeaseFunctions extends Construct {
  readonly acquire: Handler;
  readonly renew: Handler;
  readonly release: Handler;
  readonly wakeup: LeaseWakeup;

  constructor(scope: Construct, id: string, leases: LeaseTable) {
    super(scope, id);
    this.acquire = this.#open(leases, "Acquire", "Acquires a lock for somebody without a client.");
    this.renew = this.#open(leases, "Renew", "Prolongs a lease for somebody without a client.");
    this.release = this.#open(leases, "Release", "Lets a lock go for somebody without a client.");

    this.wakeup = new LeaseWakeup(this, "Wakeup", { table: leases });
    new LeaseWakeupAlarms(this, "WakeupAlarms", { wakeup: this.wakeup });
    this.#reportExpiries(leases);
  }

  #open(leases: LeaseTable, id: "Acquire" | "Renew" | "Release", description: string): Handler {
    const handler = new Handler(this, id, {
      entry: `leases/${id.toLowerCase()}.ts`,
      description,
      timeout: Duration.seconds(30),
      leases,
      environment: { [environmentNames.keyPrefix]: sharedKeyPrefix },
    });
    leases.grants.useLeases(handler, { keyPrefixes: [sharedKeyPrefix] });
    return handler;
  }

  /**
   * A lease that ttl removes was never released and never taken over: its holder died, and no caller wanted the lock.
   */
  #reportExpiries(leases: LeaseTable): void {
    const expired = new Handler(this, "Expired", {
      entry: "leases/expired.ts",
      description: "Reports leases whose holder died and nobody came.",
      timeout: Duration.seconds(30),
      leases,
    });
    EventBus.fromEventBusName(this, "DefaultBus", "default").grantPutEventsTo(expired);
    const deadLetters = new Queue(this, "UnreportedExpiries", {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: Duration.days(14),
    });
    const { sortKey, token } = attributeNames;
    expired.addEventSource(
      new DynamoEventSource(leases.table, {
        startingPosition: StartingPosition.TRIM_HORIZON,
        batchSize: 10,
        retryAttempts: 10,
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        onFailure: new SqsDlq(deadLetters),
        filters: [
          FilterCriteria.filter({
            eventName: FilterRule.isEqual("REMOVE"),
            userIdentity: {
              type: FilterRule.isEqual("Service"),
              principalId: FilterRule.isEqual("dynamodb.amazonaws.com"),
            },
            dynamodb: {
              Keys: { [sortKey]: { S: FilterRule.isEqual(leaseSortKey) } },
              OldImage: { [token]: { S: FilterRule.exists() } },
            },
          }),
        ],
      }),
    );
    this.#watchReports(expired, deadLetters);
  }

  #watchReports(expired: Handler, deadLetters: Queue): void {
    const text = systemAlarmText(
      "expiriesUnreported",
      "Leases whose holder died were not reported, or are reported late.",
    );
    alarmOnBacklog(this, "UnreportedAlarm", { ...text, queue: deadLetters });
    alarmOnEvent(this, "UndeliveredAlarm", {
      ...text,
      metrics: { undelivered: expired.metric("DestinationDeliveryFailures", { statistic: Stats.SUM }) },
    });
    alarmOnLasting(this, "LateAlarm", {
      ...text,
      metric: expired.metric("IteratorAge", { statistic: Stats.MAXIMUM }),
      threshold: latestReport.toMilliseconds(),
    });
  }
}
