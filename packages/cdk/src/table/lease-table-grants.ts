import { Stack } from "aws-cdk-lib";
import type { Grant, IGrantable } from "aws-cdk-lib/aws-iam";
import { aGrantee, checkKind } from "../prop-kinds.ts";
import { type LeaseKeyScope, leadingKeysConditions } from "./leading-keys.ts";
import type { ILeaseTable } from "./lease-table-base.ts";
import { permit, permitKeys } from "./table-permissions.ts";

/** Actions of acquiring, renewing, releasing, waiting, `lease.conditionCheck()` and batched heartbeats. */
const useActions = [
  "dynamodb:UpdateItem",
  "dynamodb:GetItem",
  "dynamodb:ConditionCheckItem",
  // Heartbeats that are due together travel in one BatchExecuteStatement, which is permitted by statement.
  "dynamodb:PartiQLUpdate",
];

/** Actions of a keeper of leases: it acquires nothing, and takes part in no transaction and no batch. */
const keepActions = ["dynamodb:UpdateItem", "dynamodb:GetItem"];
/** Actions of looks at one key. A look for an unknown task checks both of its sort keys at one moment. */
const lookActions = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:ConditionCheckItem"];

/** Actions of looks at all keys, by `list`. */
const listAction = "dynamodb:Scan";

/** More actions of operators: each is a write on the condition of what they have read. */
const operateActions = ["dynamodb:UpdateItem", "dynamodb:DeleteItem"];

/** More actions of single flight, job runs and task sets: they read all items under a key. */
const primitiveActions = [...useActions, "dynamodb:Query", "dynamodb:DeleteItem"];

/**
 * Permissions on a lease table, none wider than its name says.
 *
 * Each is for the table itself and for its replicas, and for the keys of their encryption where they have some.
 *
 * A grantee of another account is permitted by the table's own policy as well, for the table's own region. A role that
 * another stack of the app defines is permitted there by the whole account, since the role is deployed later than the
 * table; its own policy narrows that. Throws where neither the grantee nor the table is of this app, and for a service.
 *
 * ```ts
 * table.grants.useLeases(worker, { keyPrefixes: ["orders/"] });
 * table.grants.read(support);
 * table.grants.operate(oncall, { keyPrefixes: ["orders/"] });
 * ```
 */
export class LeaseTableGrants {
  /** Gives the permissions that there are on a table. */
  static fromLeaseTable(table: ILeaseTable): LeaseTableGrants {
    return new LeaseTableGrants(table);
  }

  readonly #table: ILeaseTable;

  private constructor(table: ILeaseTable) {
    this.#table = table;
  }

  /**
   * Permits all that a `LeaseClient` does with a lock: acquire, wait, renew, release, inspect, force a release, and
   * take part in a transaction by its condition check.
   *
   * Everything but listing. With keys or prefixes the condition is on the partition key (`dynamodb:LeadingKeys`), so
   * it covers what else is kept under a lock's key, too.
   *
   * @param grantee who may use the locks
   * @param scope the locks; all of the table's by default
   */
  useLeases(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", useActions, scope);
  }

  /**
   * Permits to look at locks, and to renew and release leases: what a keeper sends, and no more.
   *
   * An update is permitted as a whole: DynamoDB's permissions do not tell a renewal from an acquisition.
   */
  keepLeases(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", keepActions, scope);
  }

  /**
   * Permits all that is permitted by `useLeases`, and what the other primitives need: to query the items under a key,
   * and to delete tasks that are done.
   */
  usePrimitives(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", primitiveActions, scope);
  }

  /**
   * Permits every look, and no write: `inspect`, `inspectAll`, `describe`, `list`, `doneSlot`, an operator's `describe`,
   * `audit` and `history`, the `inspect` of semaphores, fair locks
   * and read-write locks, a leader's `current` and `observe`, a task set's `get`, `counts` and `list`, and a job's `get`,
   * `runs` and `missed`.
   *
   * With keys or prefixes: every look but `list`, `listPages` and the audit of all keys, for DynamoDB knows no condition on the keys that a Scan
   * may return. Who needs both is granted `listLeases` as well, and then sees every key.
   *
   * Records show payloads and tokens. A token lets nobody renew or release a lease without the permission to write.
   */
  read(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "read", looks(scope), scope);
  }

  /**
   * Permits what people do with others' leases, tasks and runs: all that `read` permits, and `forceRelease`,
   * `requestRevocation`, `takeBackSlot`, an operator's `stop`, `break`, `pause` and `resume`, a task set's `cancel`, `requeue` and `requeueAll`, and a job's `skip` and
   * `takeBack`.
   *
   * With keys or prefixes without `list`, as `read`. DynamoDB cannot tell these writes from others, so an operator may also
   * acquire and release the locks. Programs need `useLeases` or `usePrimitives`, which permit batched renewals, too.
   */
  operate(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "write", [...looks(scope), ...operateActions], scope);
  }

  /** Permits to look at a lock (`client.inspect`), and nothing else. */
  inspect(grantee: IGrantable, scope: LeaseKeyScope = {}): Grant {
    return this.#permit(grantee, "read", ["dynamodb:GetItem"], scope);
  }

  /**
   * Permits to list the locks (`client.list`).
   *
   * A Scan reads every lock of the table: DynamoDB knows no condition on the keys that it may return.
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
    if (table.tableStreamArn === undefined) {
      throw new Error(`${table.node.path} has no stream to read: make the table with stream: true`);
    }
    permitKeys(table, grantee, "read");
    const actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
    const resourceArns = [table.tableStreamArn];
    return permit(table, { grantee, actions, resourceArns, policyMethod: "addToStreamResourcePolicy" });
  }

  /** Permits actions on the table, and with its key what they need of that. */
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
