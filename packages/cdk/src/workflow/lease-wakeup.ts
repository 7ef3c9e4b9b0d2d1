import { environmentNames } from "@leasehold/client/environment";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { Duration, Stack } from "aws-cdk-lib";
import { MultiRegionConsistency } from "aws-cdk-lib/aws-dynamodb";
import { Grant, type IRole, Role } from "aws-cdk-lib/aws-iam";
import {
  FilterCriteria,
  FilterRule,
  type IFunction,
  type Function as LambdaFunction,
  type QualifiedFunctionBase,
  StartingPosition,
} from "aws-cdk-lib/aws-lambda";
import { DynamoEventSource, SqsDlq } from "aws-cdk-lib/aws-lambda-event-sources";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct, type IConstruct } from "constructs";
import { deadLetterQueueOf } from "../dead-letter-queue.ts";
import { aFunction, aTable, aText, checkKind, checkProps, having, type Kinds } from "../prop-kinds.ts";
import { bundledFunction } from "../table/bundled-function.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { permitKeys } from "../table/table-permissions.ts";
import { checkAccount, checkRegion, checkServed, streamArnOf } from "../table/table-place.ts";
import { roleInStackOf } from "./role-in-stack.ts";
import { wakeHandlerBundle } from "./wake-handler-bundle.ts";

/** A wakeup, made here or elsewhere. */
export interface ILeaseWakeup extends IConstruct {
  /** The table whose waiters it wakes. */
  readonly table: ILeaseTable;
  /**
   * Permits it to wake the executions of a state machine, or of a durable function, whose callback it completes; a
   * version or an alias stands for its function.
   *
   * The permission belongs to the waiting resource's stack. So that stack depends on the wakeup's stack, and never the
   * other way round.
   *
   * @throws Error for a resource of another account or region
   */
  serve(waiting: IStateMachine | IFunction): void;
}

/** The attributes for {@link LeaseWakeup.fromLeaseWakeupAttributes}. */
export interface LeaseWakeupAttributes {
  /** The table whose waiters it wakes. */
  readonly table: ILeaseTable;
  /** The ARN of the role of its `handler`, to which the permission to wake is added. */
  readonly handlerRoleArn: string;
}

/** Properties of {@link LeaseWakeup}. */
export interface LeaseWakeupProps {
  /** A table with a stream. */
  readonly table: ILeaseTable;
  /**
   * The function that wakes waiters, in place of the package's own. It gets batches of the table's stream and answers
   * with `batchItemFailures`.
   *
   * @default - a function that comes with the package
   */
  readonly handler?: LambdaFunction;
}

const kinds: Kinds<LeaseWakeupProps> = { table: aTable, handler: aFunction };
const attributeKinds: Kinds<LeaseWakeupAttributes> = { table: aTable, handlerRoleArn: aText };
const aWaiter = having("a state machine or a function", "node");

/** The methods of every wakeup. */
abstract class LeaseWakeupBase extends Construct implements ILeaseWakeup {
  abstract readonly table: ILeaseTable;
  /** The role of the function that wakes waiters. */
  protected abstract readonly handlerRole: IRole;

  serve(waiting: IStateMachine | IFunction): void {
    checkKind("waiting", waiting, aWaiter);
    checkServed({ construct: this, env: this.table.table.env, does: "wake waiters" }, waiting);
    const [actions, resourceArns] =
      "stateMachineArn" in waiting
        ? [["states:SendTaskSuccess"], [waiting.stateMachineArn]]
        : // The service authorises by the durable execution's ARN, which names a version, and never an alias.
          [["lambda:SendDurableExecutionCallbackSuccess"], [`${unqualifiedArn(waiting)}:*`]];
    Grant.addToPrincipal({ grantee: roleInStackOf(waiting, this.handlerRole), actions, resourceArns });
  }
}

/**
 * Wakes the workflow or durable function that has waited longest when a lock is released.
 *
 * Waiters cost nothing while they wait: they park on a task token or a callback in the table. The wakeup sees the
 * release on the table's stream, and resumes the next waiter. One for each table. If a wake-up is lost, the waiter
 * resumes by its own timeout.
 *
 * The function comes with the package: nothing is bundled or downloaded. It uses the AWS SDK of Lambda's runtime. Costs an
 * invocation for each release, with 1 read, and for each wake-up 2 reads, a deletion and a call of Step Functions.
 *
 * ```ts
 * const wakeup = new LeaseWakeup(this, "Wakeup", { table });
 * ```
 */
export class LeaseWakeup extends LeaseWakeupBase {
  /** Refers to a wakeup that another app has defined, in this account and region. */
  static fromLeaseWakeupAttributes(
    scope: Construct,
    id: string,
    attributes: LeaseWakeupAttributes,
  ): ILeaseWakeup {
    return new ImportedLeaseWakeup(scope, id, attributes);
  }

  readonly table: ILeaseTable;
  readonly handler: LambdaFunction;
  /**
   * Records that the stream could not deliver: each is one wake-up that its waiter had to replace by its own timeout.
   */
  readonly deadLetterQueue: Queue;
  protected readonly handlerRole: IRole;

  constructor(scope: Construct, id: string, props: LeaseWakeupProps) {
    super(scope, id);
    const { table, handler: own } = checkProps(props, kinds, "table");
    checkAccount(this, table);
    checkRegion(this, table);
    if (table.multiRegionConsistency === MultiRegionConsistency.STRONG) {
      throw new Error(
        `${table.node.path} has strong consistency, and so no transactions, which waiters need: use a table of one region`,
      );
    }
    streamArnOf(table, ", so no release can be seen");
    this.table = table;
    const handler =
      own ??
      bundledFunction(this, {
        description: "Wakes who has waited longest for a lock that was let go.",
        folder: "leasehold-wake",
        code: wakeHandlerBundle,
      });
    this.handler = handler;
    this.handlerRole = roleOf(handler);
    // The function's event source names the queue. If the function is in another stack, that stack must not depend on
    // this one.
    const isHere = Stack.of(handler) === Stack.of(this);
    this.deadLetterQueue = isHere ? deadLetterQueueOf(this) : deadLetterQueueOf(handler, "WakeupDeadLetters");
    const { sortKey, token } = attributeNames;
    const wasHeld = { [token]: { S: FilterRule.exists() } };
    const lease = { Keys: { [sortKey]: { S: FilterRule.isEqual(leaseSortKey) } }, OldImage: wasHeld };
    handler.addEventSource(
      new DynamoEventSource(table.table, {
        startingPosition: StartingPosition.LATEST,
        batchSize: 10,
        retryAttempts: 3,
        maxRecordAge: Duration.minutes(5),
        bisectBatchOnError: true,
        reportBatchItemFailures: true,
        onFailure: new SqsDlq(this.deadLetterQueue),
        filters: [
          FilterCriteria.filter({
            eventName: FilterRule.isEqual("MODIFY"),
            dynamodb: { ...lease, NewImage: { [token]: { S: FilterRule.notExists() } } },
          }),
          FilterCriteria.filter({ eventName: FilterRule.isEqual("REMOVE"), dynamodb: lease }),
        ],
      }),
    );
    handler.addEnvironment(environmentNames.tableName, table.tableName);
    permitKeys(table, handler, "write");
    Grant.addToPrincipal({
      grantee: handler,
      actions: ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:DeleteItem"],
      resourceArns: [table.tableArn],
    });
  }
}

class ImportedLeaseWakeup extends LeaseWakeupBase {
  readonly table: ILeaseTable;
  protected readonly handlerRole: IRole;

  constructor(scope: Construct, id: string, attributes: LeaseWakeupAttributes) {
    super(scope, id);
    const { table, handlerRoleArn } = checkProps(attributes, attributeKinds, "table", "handlerRoleArn");
    checkAccount(this, table);
    checkRegion(this, table);
    this.table = table;
    this.handlerRole = Role.fromRoleArn(this, "HandlerRole", handlerRoleArn);
  }
}

function unqualifiedArn(fn: IFunction): string {
  const { functionArn } = (fn as Partial<QualifiedFunctionBase>).lambda ?? fn;
  // The ARN of an imported function may have a version or an alias as its eighth part.
  return functionArn.split(":").slice(0, 7).join(":");
}

function roleOf(handler: LambdaFunction): IRole {
  if (handler.role !== undefined) return handler.role;
  throw new Error(
    `the handler ${handler.node.path} has no role that this app knows, which would have to be permitted to wake: define ` +
      "the function here, or leave handler out",
  );
}
