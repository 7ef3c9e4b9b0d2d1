import { environmentNames } from "@leasehold/client/environment";
import { attributeNames, cooldownToken, leaseSortKey } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import { Grant } from "aws-cdk-lib/aws-iam";
import {
  FilterCriteria,
  FilterRule,
  type Function as LambdaFunction,
  StartingPosition,
} from "aws-cdk-lib/aws-lambda";
import { DynamoEventSource, SqsDlq } from "aws-cdk-lib/aws-lambda-event-sources";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { deadLetterQueueOf } from "../dead-letter-queue.ts";
import { aDuration, aTable, checkProps, type Kinds } from "../prop-kinds.ts";
import { checkKnown } from "../workflow/durations.ts";
import { bundledFunction } from "./bundled-function.ts";
import { historyHandlerBundle } from "./history-handler-bundle.ts";
import { historyRetentionVariable } from "./history-variable.ts";
import type { ILeaseTable } from "./lease-table-base.ts";
import { permitKeys } from "./table-permissions.ts";

/** Properties of {@link LeaseHistory}. */
export interface LeaseHistoryProps {
  /** A table with a stream. */
  readonly table: ILeaseTable;
  /** How long a change is kept. From a minute to 10 years. */
  readonly keepFor: Duration;
}

const kinds: Kinds<LeaseHistoryProps> = { table: aTable, keepFor: aDuration };

/**
 * Records the holders of each lock, and how each hold ended, from the table's stream. `LeaseOperator.history` reads
 * them.
 *
 * `LeaseTable({ history })` makes it. No caller of a lock sends or waits for anything more. Costs an invocation for a
 * batch of changes, and 1 write for each: an acquisition and a release are two. It does not see renewals, except those
 * of a holder that has taken the lock over. Permits, readers and writers, runs and tasks have no history here. A stream
 * has room for two readers: this one and a LeaseWakeup.
 */
export class LeaseHistory extends Construct {
  readonly handler: LambdaFunction;
  /** Records that could not be written. */
  readonly deadLetterQueue: Queue;

  constructor(scope: Construct, id: string, props: LeaseHistoryProps) {
    super(scope, id);
    const { table, keepFor } = checkProps(props, kinds, "table", "keepFor");
    checkKnown("history", keepFor, "the function's settings are worked out from it");
    if (keepFor.toSeconds() < 60 || keepFor.toDays() > 3_660) {
      throw new Error(
        `history is ${keepFor.toHumanString()}; allowed: from a minute to 10 years (3660 days)`,
      );
    }
    const handler = bundledFunction(this, {
      description: "Writes down who held each lock, and how each hold ended.",
      folder: "leasehold-history",
      code: historyHandlerBundle,
    });
    this.handler = handler;
    this.deadLetterQueue = deadLetterQueueOf(this);
    handler.addEventSource(
      new DynamoEventSource(table.table, {
        startingPosition: StartingPosition.LATEST,
        batchSize: 100,
        maxBatchingWindow: Duration.seconds(5),
        retryAttempts: 10,
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        onFailure: new SqsDlq(this.deadLetterQueue),
        filters: changesOfLocks().map((dynamodb) => FilterCriteria.filter({ dynamodb })),
      }),
    );
    handler.addEnvironment(environmentNames.tableName, table.tableName);
    handler.addEnvironment(historyRetentionVariable, String(keepFor.toMilliseconds()));
    permitKeys(table, handler, "write");
    // The history's items have their lock's key, so no condition on keys can distinguish them.
    Grant.addToPrincipal({ grantee: handler, actions: ["dynamodb:PutItem"], resourceArns: [table.tableArn] });
  }
}

/** The writes that begin or end a hold of a lock, and requests to stop; never the history's own. */
function changesOfLocks(): object[] {
  const { sortKey, token, lastEnd, revocation } = attributeNames;
  const Keys = { [sortKey]: { S: FilterRule.isEqual(leaseSortKey) } };
  const exists = (attribute: string): object => ({ [attribute]: { S: FilterRule.exists() } });
  const isMissing = (attribute: string): object => ({ [attribute]: { S: FilterRule.notExists() } });
  const isFree = {
    [token]: { S: [...FilterRule.notExists(), ...FilterRule.beginsWith(cooldownToken(""))] },
  };
  return [
    { Keys, OldImage: isFree, NewImage: exists(token) },
    { Keys, OldImage: exists(token), NewImage: isFree },
    {
      Keys,
      OldImage: exists(token),
      NewImage: { ...exists(token), [lastEnd]: { S: FilterRule.beginsWith("takenOver ") } },
    },
    { Keys, OldImage: isMissing(revocation), NewImage: exists(revocation) },
  ];
}
