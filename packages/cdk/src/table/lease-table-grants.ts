import { Stack } from "aws-cdk-lib";
import type { Grant, IGrantable } from "aws-cdk-lib/aws-iam";
import { aGrantee, checkKind } from "../prop-kinds.ts";
import { type LeaseKeyScope, leadingKeysConditions } from "./leading-keys.ts";
import { permit, permitKeys } from "./table-permissions.ts";
import { type ILeaseTableRef, streamArnOf } from "./table-place.ts";

/** Actions of acquiring, renewing, releasing, waiting, `lease.conditionCheck()` and batched heartbeats. */
const useActions = [
  "dynamodb:UpdateItem",
  "dynamodb:GetItem",
  "dynamodb:ConditionCheckItem",
  // Heartbeats that are due together use one BatchExecuteStatement, which IAM permits by statement.
  "dynamodb:PartiQLUpdate",
];

/** Actions of a keeper: it acquires nothing, and uses no transaction and no batch. */
const keepActions = ["dynamodb:UpdateItem", "dynamodb:GetItem"];
/** Actions of reads of one key. A read of an unknown task checks both of its sort keys at one moment. */
const lookActions = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem"];

/** Actions of reads of all keys, by `list`. */
const listAction = "dynamodb:Scan";

/** More actions of operators: each is a conditional write after a read. */
const operateActions = ["dynamodb:UpdateItem", "dynamodb:DeleteItem"];

/** More actions of single flight, job runs and task sets: they read all items under a key. */
const primitiveActions = [...useActions, "dynamodb:Query", "dynamodb:DeleteItem"];

/**
 * Permissions on a lease table, none wider than its name says.
 *
 * Each is for the table itself and its replicas, and for their encryption keys if they have any.
 *
 * For a grantee of another account, the table's own policy permits it as well, for the table's own region. If another
 * stack of the app defines the role, that policy permits the whole account, because the role is deployed later than the
 * table; the role's own policy narrows that. Throws if neither the grantee nor the table belongs to this app, and for a
 * service.
 *
 * ```ts
 * table.grants.useLeases(worker, { keyPrefixes: ["orders/"] });
 * table.grants.read(support);
 * table.grants.operate(oncall, { keyPrefixes: ["orders/"] });
 * ```
 */
export class LeaseTableGrants {
  /** Returns the permissions of a table. */
  static fromLeaseTable(table: ILeaseTableRef): LeaseTableGrants {
    return new LeaseTableGrants(table);
  }

  readonly #table: ILeaseTableRef;

  private constructor(table: ILeaseTableRef) {
    this.#table = table;
  }

  /**
   * Permits everything that a `LeaseClient` does with a lock: acquire, wait, renew, release, inspect, force a release,
   * and take part in a transaction by its condition check.
   *
   * Everything but listing. With keys or prefixes the condition is on the partition key (`dynamodb:LeadingKeys`), so it
   * also covers the other items under a lock's key.
   *
   * @param grantee who may use the locks
   * @param scope the locks; all of the table's by default
   */
  useLeases(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", useActions, scope);
  }

  /**
   * Permits to read locks, and to renew and release leases: only what a keeper sends.
   *
   * It permits every update, because DynamoDB's permissions do not distinguish a renewal from an acquisition.
   */
  keepLeases(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", keepActions, scope);
  }

  /**
   * Permits everything that `useLeases` permits, and what the other primitives need: to query the items under a key,
   * and to delete tasks that are done.
   */
  usePrimitives(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", primitiveActions, scope);
  }

  /**
   * Permits every read, and no write: `inspect`, `inspectAll`, `describe`, `list`, `doneSlot`, an operator's
   * `describe`, `audit` and `history`, the `inspect` of semaphores, fair locks and read-write locks, a leader's
   * `current` and `observe`, a task set's `get`, `counts` and `list`, and a job's `get`, `runs` and `missed`.
   *
   * With keys or prefixes: every read except `list`, `listPages` and the audit of all keys, because DynamoDB has no
   * condition on the keys that a Scan returns. For both, grant `listLeases` as well; then the grantee sees every key.
   *
   * Records show payloads and tokens. With a token but without the permission to write, the grantee cannot renew or
   * release a lease.
   */
  read(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "read", looks(scope), scope);
  }

  /**
   * Permits operators' actions on others' leases, tasks and runs: everything that `read` permits, and `forceRelease`,
   * `requestRevocation`, `takeBackSlot`, an operator's `stop`, `break`, `pause` and `resume`, a task set's `cancel`,
   * `requeue` and `requeueAll`, and a job's `skip` and `takeBack`.
   *
   * With keys or prefixes it does not permit `list`, like `read`. DynamoDB cannot distinguish these writes from others,
   * so an operator may also acquire and release the locks. Programs need `useLeases` or `usePrimitives`, which permit
   * batched renewals, too.
   */
  operate(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", [...looks(scope), ...operateActions], scope);
  }

  /** Permits to read a lock (`client.inspect`), and nothing else. */
  inspect(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "read", ["dynamodb:GetItem"], scope);
  }

  /**
   * Permits to list the locks (`LeaseAdmin.list`).
   *
   * A Scan reads every lock of the table: DynamoDB has no condition on the keys that it returns.
   */
  listLeases(grantee: IGrantable): Grant {
    return this.#permit(grantee, "read", [listAction], {});
  }

  /**
   * Permits to read the table's stream.
   *
   * Lambda's own event source needs ListStreams as well, which `DynamoEventSource` grants by itself.
   */
  readStream(grantee: IGrantable): Grant {
    checkKind("grantee", grantee, aGrantee);
    const table = this.#table;
    const resourceArns = [streamArnOf(table, " to read")];
    permitKeys(table, grantee, "read");
    const actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
    return permit(table, { grantee, actions, resourceArns, policyMethod: "addToStreamResourcePolicy" });
  }

  /** Permits actions on the table, and the actions that they need on its encryption key. */
  #permit(grantee: IGrantable, access: "read" | "write", actions: string[], scope: LeaseKeyScope): Grant {
    checkKind("grantee", grantee, aGrantee);
    const table = this.#table;
    const { tableArn, tableName, replicaRegions } = table;
    const conditions = leadingKeysConditions(scope);
    const ofReplica = (region: string): string =>
      Stack.of(table).formatArn({ service: "dynamodb", region, resource: "table", resourceName: tableName });
    const resourceArns = [tableArn, ...replicaRegions.map(ofReplica)];
    permitKeys(table, grantee, access);
    return permit(table, { grantee, actions, resourceArns, conditions, policyMethod: "addToResourcePolicy" });
  }
}

/** A list reads all keys, whatever the scope says. */
function looks({ keys, keyPrefixes }: LeaseKeyScope): string[] {
  return keys === undefined && keyPrefixes === undefined ? [...lookActions, listAction] : lookActions;
}
