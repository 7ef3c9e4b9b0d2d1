import {
  dimensionNames,
  inMilliseconds,
  type MetricName,
  metricNames,
  metricsNamespace,
} from "@leasehold/client/metrics";
import { Metric, type MetricOptions, Stats } from "aws-cdk-lib/aws-cloudwatch";
import type { ITableV2, MultiRegionConsistency, TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { Construct, type IConstruct } from "constructs";
import { LeaseTableGrants } from "./lease-table-grants.ts";
import { type ILeaseTableRef, nameFor } from "./table-place.ts";

/** A lease table, made here or elsewhere. */
export interface ILeaseTable extends ILeaseTableRef {
  /** Permissions on the table. */
  readonly grants: LeaseTableGrants;
  /**
   * The `tableName` for a client in the stack of `user`, and for `LEASEHOLD_TABLE_NAME` of its functions: the name,
   * or the ARN when the table is, or may be, of another account or region.
   */
  nameFor(user: IConstruct): string;
  /** Gives one of the table's metrics, as clients of this account and region write it. */
  metric(name: MetricName, props?: MetricOptions): Metric;
  /** How often a caller acquired a lock. */
  metricAcquired(props?: MetricOptions): Metric;
  /** How often a call met another holder. */
  metricContended(props?: MetricOptions): Metric;
  /** How often a caller took over an expired lock. */
  metricTakenOver(props?: MetricOptions): Metric;
  /** How often a renewal was confirmed. */
  metricRenewed(props?: MetricOptions): Metric;
  /** How often a lease ended before it was released. */
  metricLost(props?: MetricOptions): Metric;
  /** How often a holder released its lock. */
  metricReleased(props?: MetricOptions): Metric;
  /** How often ttl removed an unreleased lease: its holder died, and no caller has wanted the lock since. */
  metricExpired(props?: MetricOptions): Metric;
  /** How often the work of a slot was done and its record was not confirmed, so that a retry may do it again. */
  metricCompletionFailed(props?: MetricOptions): Metric;
  /** Milliseconds from the call to the grant. */
  metricWaitTime(props?: MetricOptions): Metric;
  /** Milliseconds from the grant to the release or the loss. */
  metricHoldTime(props?: MetricOptions): Metric;
  /** How far a machine's clock was off, in milliseconds, if that was more than the client allows. */
  metricClockSkew(props?: MetricOptions): Metric;
  /** DynamoDB's own count of refused conditional writes: contention, late renewals, and takeovers. */
  metricConditionalCheckFailedRequests(props?: MetricOptions): Metric;
}

/**
 * The methods of every lease table.
 *
 * @internal
 */
export abstract class LeaseTableBase extends Construct implements ILeaseTable {
  abstract readonly table: ITableV2;
  abstract readonly tableStreamArn: string | undefined;
  abstract readonly encryption: TableEncryptionV2 | undefined;
  abstract readonly replicaRegions: string[];
  abstract readonly multiRegionConsistency: MultiRegionConsistency | undefined;
  readonly grants: LeaseTableGrants = LeaseTableGrants.fromLeaseTable(this);

  get tableName(): string {
    return this.table.tableName;
  }

  get tableArn(): string {
    return this.table.tableArn;
  }

  get encryptionKey(): IKey | undefined {
    return this.table.encryptionKey;
  }

  /** The `tableName` for a client in the stack of `user`: the name here, and the ARN elsewhere. */
  nameFor(user: IConstruct): string {
    return nameFor(user, this);
  }

  /** Gives one of the metrics that clients write: a sum over 5 minutes; of a duration, its 95th percentile. */
  metric(name: MetricName, props?: MetricOptions): Metric {
    return leaseMetric(name, { tableName: this.nameFor(this) }, props);
  }

  metricAcquired(props?: MetricOptions): Metric {
    return this.metric(metricNames.acquired, props);
  }

  metricContended(props?: MetricOptions): Metric {
    return this.metric(metricNames.contended, props);
  }

  metricTakenOver(props?: MetricOptions): Metric {
    return this.metric(metricNames.takenOver, props);
  }

  metricRenewed(props?: MetricOptions): Metric {
    return this.metric(metricNames.renewed, props);
  }

  metricLost(props?: MetricOptions): Metric {
    return this.metric(metricNames.lost, props);
  }

  metricReleased(props?: MetricOptions): Metric {
    return this.metric(metricNames.released, props);
  }

  metricExpired(props?: MetricOptions): Metric {
    return this.metric(metricNames.expired, props);
  }

  metricCompletionFailed(props?: MetricOptions): Metric {
    return this.metric(metricNames.completionFailed, props);
  }

  metricWaitTime(props?: MetricOptions): Metric {
    return this.metric(metricNames.waitTime, props);
  }

  metricHoldTime(props?: MetricOptions): Metric {
    return this.metric(metricNames.holdTime, props);
  }

  metricClockSkew(props?: MetricOptions): Metric {
    return this.metric(metricNames.clockSkew, props);
  }

  metricConditionalCheckFailedRequests(props?: MetricOptions): Metric {
    return this.table.metricConditionalCheckFailedRequests(props);
  }
}

/**
 * Returns one of the metrics that clients, functions and jobs write, as a sum over 5 minutes; a duration as its 95th
 * percentile.
 *
 * With a job, only the metrics of that job's runs; otherwise those of all uses of the table.
 */
export function leaseMetric(
  name: MetricName,
  subject: { readonly tableName: string; readonly job?: string },
  props: MetricOptions = {},
): Metric {
  return new Metric({
    namespace: metricsNamespace,
    metricName: name,
    dimensionsMap: {
      [dimensionNames.table]: subject.tableName,
      ...(subject.job === undefined ? {} : { [dimensionNames.job]: subject.job }),
    },
    statistic: inMilliseconds.includes(name) ? Stats.percentile(95) : Stats.SUM,
    ...props,
  });
}
