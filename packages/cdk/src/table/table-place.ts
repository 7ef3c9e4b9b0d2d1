import { type IResource, type ResourceEnvironment, Stack, Token, TokenComparison } from "aws-cdk-lib";
import type { ITableV2, MultiRegionConsistency, TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { IConstruct } from "constructs";

/** The resources of a lease table: what permissions on it and its address are made of. */
export interface ILeaseTableRef extends IConstruct {
  /** The DynamoDB table. */
  readonly table: ITableV2;
  /** The table's name, which means this table in its own account and region only. */
  readonly tableName: string;
  /** The table's ARN. */
  readonly tableArn: string;
  /** The stream's ARN; undefined without a stream. */
  readonly tableStreamArn: string | undefined;
  /** The key of the table's encryption; undefined if AWS owns it. */
  readonly encryptionKey: IKey | undefined;
  /** How the table and its replicas are encrypted; undefined if this app does not define it. */
  readonly encryption: TableEncryptionV2 | undefined;
  /** Regions of the table's replicas, besides its own. */
  readonly replicaRegions: string[];
  /** How replicas follow each other's writes; undefined if this app does not define it. */
  readonly multiRegionConsistency: MultiRegionConsistency | undefined;
}

/** Whether two accounts, or two regions, are the same; undefined if only the deployment knows. */
export function areSame(one: string, other: string): boolean | undefined {
  // Also if both are the stack's own, which only the deployment knows.
  if (one === other) return true;
  return Token.compareStrings(one, other) === TokenComparison.DIFFERENT ? false : undefined;
}

/**
 * How a user's requests name a table: by its name in the user's own account and region, and by its ARN elsewhere.
 *
 * With a name alone, DynamoDB would take the user's own table of that name.
 */
export function nameFor(user: IConstruct, table: ILeaseTableRef): string {
  const stack = Stack.of(user);
  const { account, region } = table.table.env;
  const isHere = areSame(stack.account, account) === true && areSame(stack.region, region) === true;
  return isHere ? table.tableName : table.tableArn;
}

/** Refuses a table of another region for constructs whose requests stay in their own region. */
export function checkRegion(user: IConstruct, table: ILeaseTableRef): void {
  const [here, there] = [Stack.of(user).region, table.table.env.region];
  if (areSame(here, there) !== false) return;
  throw new Error(
    `the table ${table.node.path} is in ${there}, and ${user.node.path} can use tables of its own region (${here}) ` +
      `only: use a table of ${here}, or define it in a stack of ${there}`,
  );
}

/** Refuses a table of another account for constructs that wake or answer its waiting runs. */
export function checkAccount(user: IConstruct, table: ILeaseTableRef): void {
  const [here, there] = [Stack.of(user).account, table.table.env.account];
  if (areSame(here, there) !== false) return;
  throw new Error(
    `the table ${table.node.path} is of the account ${there}, and nobody in ${here} can wake what waits there: ` +
      `define the LeaseWakeup, and the workflows that wait, in ${there}; here, use what does not wait ("skip", "fail")`,
  );
}

/** The ARN of the stream of a table. Refuses one without, for what has to see its changes. */
export function streamArnOf({ node, tableStreamArn }: ILeaseTableRef, lack: string): string {
  if (tableStreamArn !== undefined) return tableStreamArn;
  throw new Error(`${node.path} has no stream${lack}: make the table with stream: true`);
}

/** Whether two tables are the same, even if two stacks have imported it. */
export function isSameTable(one: ILeaseTableRef, other: ILeaseTableRef): boolean {
  const arnOf = (table: ILeaseTableRef): string => JSON.stringify(Stack.of(table).resolve(table.tableArn));
  return one === other || arnOf(one) === arnOf(other);
}

/** Refuses a state machine or a function of another account or region: Step Functions and Lambda do not reach it. */
export function checkServed(
  part: { readonly construct: IConstruct; readonly env: ResourceEnvironment; readonly does: string },
  served: IResource,
): void {
  for (const place of ["region", "account"] as const) {
    const [here, there] = [part.env[place], served.env[place]];
    if (areSame(here, there) !== false) continue;
    throw new Error(
      `${served.node.path} is of the ${place} ${there}, and ${part.construct.node.path} can ${part.does} of its own ` +
        `${place} (${here}) only: define both in one account and region`,
    );
  }
}
