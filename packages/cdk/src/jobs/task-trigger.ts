import { attributeNames, taskSortKeyPrefix } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import { FilterCriteria, FilterRule, type IFunction, StartingPosition } from "aws-cdk-lib/aws-lambda";
import { DynamoEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import { Construct } from "constructs";
import { aFunction, aListOf, aNumber, aTable, aText, checkProps, type Kinds } from "../prop-kinds.ts";
import { type LeaseKeyScope, leadingKeysConditions } from "../table/leading-keys.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { checkServed, streamArnOf } from "../table/table-place.ts";

/** Properties of {@link TaskTrigger}. `keys` and `keyPrefixes` name the task sets; without either, all sets of the table. */
export interface TaskTriggerProps extends LeaseKeyScope {
  /** A table with a stream. */
  readonly table: ILeaseTable;
  /** The function that does the tasks. */
  readonly worker: IFunction;
  /** How many workers the stream starts at once for each of its shards: from 1 to 10. @default 1 */
  readonly parallelizationFactor?: number;
}

const kinds: Kinds<TaskTriggerProps> = {
  table: aTable,
  worker: aFunction,
  parallelizationFactor: aNumber,
  keys: aListOf(aText),
  keyPrefixes: aListOf(aText),
};

/**
 * Starts a worker when tasks are added to a set, or requeued: within about a second, in place of its next look.
 *
 * The worker gets a batch of the table's stream, in which only the names of the sets matter. It claims tasks until none
 * is left: `tasks.process(work, { until: "idle" })`. It is permitted to use the sets (`usePrimitives`).
 *
 * A start that fails is repeated twice, for up to 5 minutes, and then given up. Tasks that wait for their time or for
 * their next attempt, and those of dead workers, start nobody: a schedule has to start the worker too, each minute for
 * example.
 *
 * A stream has room for two readers: each trigger, each `LeaseWakeup` and a `history` is one. So name several sets of
 * one worker in one trigger.
 *
 * Costs an invocation for each batch of up to 100 tasks, and no request of its own.
 *
 * ```ts
 * new TaskTrigger(this, "Letters", { table, worker, keys: ["letters"] });
 * ```
 */
export class TaskTrigger extends Construct {
  /** Throws for a table without a stream, and for one of another account or region than the worker. */
  constructor(scope: Construct, id: string, props: TaskTriggerProps) {
    super(scope, id);
    const {
      table,
      worker,
      parallelizationFactor = 1,
      keys,
      keyPrefixes,
    } = checkProps(props, kinds, "table", "worker");
    const sets = { ...(keys && { keys }), ...(keyPrefixes && { keyPrefixes }) };
    leadingKeysConditions(sets);
    checkServed({ construct: this, env: table.table.env, does: "start workers" }, worker);
    streamArnOf(table, ", so no new task can be seen");
    const { partitionKey, sortKey } = attributeNames;
    const names = [...(keys ?? []), ...(keyPrefixes ?? []).map((prefix) => ({ prefix }))];
    const ofSets = names.length === 0 ? {} : { [partitionKey]: { S: names } };
    worker.addEventSource(
      new DynamoEventSource(table.table, {
        startingPosition: StartingPosition.LATEST,
        batchSize: 100,
        parallelizationFactor,
        retryAttempts: 2,
        maxRecordAge: Duration.minutes(5),
        filters: [
          FilterCriteria.filter({
            eventName: FilterRule.isEqual("INSERT"),
            dynamodb: { Keys: { ...ofSets, [sortKey]: { S: FilterRule.beginsWith(taskSortKeyPrefix) } } },
          }),
        ],
      }),
    );
    table.grants.usePrimitives(worker, sets);
  }
}
