import { attributeNames } from "@leasehold/client/schema";
import { Annotations, type Duration, RemovalPolicy, Stack, Tags, Token } from "aws-cdk-lib";
import {
  AttributeType,
  Billing,
  type ContributorInsightsSpecification,
  type ITableV2,
  MultiRegionConsistency,
  type ReplicaTableProps,
  StreamViewType,
  type TableAttributesV2,
  TableEncryption,
  TableEncryptionV2,
  TableV2,
  type WarmThroughput,
} from "aws-cdk-lib/aws-dynamodb";
import type { PolicyDocument } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import {
  aDuration,
  aFlag,
  aListOf,
  aText,
  checkKind,
  checkProps,
  having,
  type Kinds,
  oneOf,
} from "../prop-kinds.ts";
import { LeaseHistory } from "./lease-history.ts";
import { type ILeaseTable, LeaseTableBase } from "./lease-table-base.ts";

/** Properties of {@link LeaseTable}. */
export interface LeaseTableProps {
  /**
   * The billing of capacity. With `Billing.provisioned`, a table with too little capacity refuses renewals, and holders
   * lose their leases.
   *
   * @default Billing.onDemand()
   */
  readonly billing?: Billing;
  /**
   * Whether CloudWatch ranks the most used or throttled keys. It shows keys in plain text, so a lock's key must not be
   * secret. A replica may have its own.
   *
   * @default - no such ranking
   */
  readonly contributorInsightsSpecification?: ContributorInsightsSpecification;
  /** Whether the table refuses to be deleted. @default true */
  readonly deletionProtection?: boolean;
  /** A key of KMS needs `env.region` of the stack to be set. @default - a key that AWS owns, at no cost */
  readonly encryption?: TableEncryptionV2;
  /**
   * How long the table keeps the history of each lock: its holders, and how each hold ended; see {@link LeaseHistory}.
   * It turns the stream on, and creates a function that reads it. From a minute to 10 years.
   *
   * @default - no history
   */
  readonly history?: Duration;
  /**
   * How replicas follow each other's writes. A lock with holders in more than one region needs STRONG, which DynamoDB
   * has for three regions: two replicas, or one and a witness. Such a table has neither ttl nor transactions: unused
   * locks stay, and a `history` and a {@link LeaseWakeup} are refused.
   *
   * @default MultiRegionConsistency.EVENTUAL
   */
  readonly multiRegionConsistency?: MultiRegionConsistency;
  /** Whether the table can be set back to any second of the last 35 days. @default true */
  readonly pointInTimeRecovery?: boolean;
  /**
   * What happens to the table when it leaves its stack. Deleting it deletes the fencing tokens.
   * @default RemovalPolicy.RETAIN
   */
  readonly removalPolicy?: RemovalPolicy;
  /** Copies in other regions. The stack's own region has to be set. @default - none */
  readonly replicas?: ReplicaTableProps[];
  /**
   * A policy of the table itself, such as for roles of another account. `grants` add their own statements to it.
   *
   * @default - none, until a grant needs one
   */
  readonly resourcePolicy?: PolicyDocument;
  /**
   * Whether changes appear on a stream, with the item before and after. Waiting workflows, queued jobs, a `history` and
   * the metric of dead holders' leases need it.
   *
   * @default - true with a `history`, otherwise false
   */
  readonly stream?: boolean;
  /** @default - a unique name that CloudFormation makes */
  readonly tableName?: string;
  /**
   * How many requests a second the table can serve at once, before a peak comes. It can be raised but not lowered, and
   * each raise has a one-time cost.
   *
   * @default - DynamoDB's default for a new table
   */
  readonly warmThroughput?: WarmThroughput;
  /** The region that takes part in a strongly consistent table without a replica. @default - none */
  readonly witnessRegion?: string;
}

const kinds: Kinds<LeaseTableProps> = {
  billing: having("a Billing, such as Billing.onDemand()", "mode"),
  contributorInsightsSpecification: having("an object with enabled, and perhaps mode", "enabled"),
  deletionProtection: aFlag,
  encryption: having("a TableEncryptionV2", "type"),
  history: aDuration,
  multiRegionConsistency: oneOf(...Object.values(MultiRegionConsistency)),
  pointInTimeRecovery: aFlag,
  removalPolicy: oneOf(...Object.values(RemovalPolicy)),
  replicas: aListOf(having("a replica with its region", "region")),
  resourcePolicy: having("a PolicyDocument", "addStatements"),
  stream: aFlag,
  tableName: aText,
  warmThroughput: having("an object of readUnitsPerSecond and writeUnitsPerSecond"),
  witnessRegion: aText,
};

/**
 * The table that keeps leases: on demand by default, with ttl, backed up, and protected from deletion.
 *
 * By default it outlives its stack. A lost table loses the fencing tokens; new ones still grow, because they start from
 * the time.
 *
 * ```ts
 * const table = new LeaseTable(this, "Leases");
 * table.grants.useLeases(worker, { keyPrefixes: ["orders/"] });
 * worker.addEnvironment(environmentNames.tableName, table.tableName);
 * ```
 */
export class LeaseTable extends LeaseTableBase {
  /** Refers to a lease table that is defined elsewhere, in this account and region. */
  static fromLeaseTableName(scope: Construct, id: string, tableName: string): ILeaseTable {
    const attributes = { tableName: checkKind("tableName", tableName, aText) };
    return LeaseTable.fromLeaseTableAttributes(scope, id, attributes);
  }

  /**
   * Refers to a lease table that is defined elsewhere, also in another account.
   *
   * Its users here address it by its ARN. A table of another account needs a resource-based policy that permits the
   * roles of this account, and must not be encrypted with the key `aws/dynamodb`. A workflow, a heartbeat or a job
   * cannot use a table of another region, and a LeaseWakeup none of another account: both are refused at synth.
   */
  static fromLeaseTableArn(scope: Construct, id: string, tableArn: string): ILeaseTable {
    const attributes = { tableArn: checkKind("tableArn", tableArn, aText) };
    return LeaseTable.fromLeaseTableAttributes(scope, id, attributes);
  }

  /** Refers to a lease table that is defined elsewhere, with its stream or its encryption key. */
  static fromLeaseTableAttributes(scope: Construct, id: string, attributes: TableAttributesV2): ILeaseTable {
    return new ImportedLeaseTable(scope, id, attributes);
  }

  /** @deprecated Use {@link LeaseTable.fromLeaseTableName}: the CDK names imports so. */
  static fromTableName(scope: Construct, id: string, tableName: string): LeaseTable {
    return LeaseTable.fromTableAttributes(scope, id, { tableName: checkKind("tableName", tableName, aText) });
  }

  /** @deprecated Use {@link LeaseTable.fromLeaseTableArn}: the CDK names imports so. */
  static fromTableArn(scope: Construct, id: string, tableArn: string): LeaseTable {
    return LeaseTable.fromTableAttributes(scope, id, { tableArn: checkKind("tableArn", tableArn, aText) });
  }

  /** @deprecated Use {@link LeaseTable.fromLeaseTableAttributes}: the CDK names imports so. */
  static fromTableAttributes(scope: Construct, id: string, attributes: TableAttributesV2): LeaseTable {
    return new ImportedLeaseTable(scope, id, attributes);
  }

  readonly table: ITableV2;
  readonly tableStreamArn: string | undefined;
  readonly encryption: TableEncryptionV2 | undefined;
  readonly replicaRegions: string[];
  readonly multiRegionConsistency: MultiRegionConsistency | undefined;
  /** The construct that records the history; undefined without one. */
  readonly history: LeaseHistory | undefined;

  constructor(scope: Construct, id: string, props: LeaseTableProps = {}) {
    super(scope, id);
    const given = checkProps(props, kinds);
    const {
      history,
      stream = history !== undefined,
      pointInTimeRecovery: pointInTimeRecoveryEnabled = true,
      encryption = TableEncryptionV2.dynamoOwnedKey(),
      ...asGiven
    } = given;
    if (history !== undefined && !stream) {
      throw new Error(
        `${this.node.path} has a history, which is made from the stream: leave stream: false out`,
      );
    }
    const { replicas = [], multiRegionConsistency = MultiRegionConsistency.EVENTUAL } = given;
    const isStrong = multiRegionConsistency === MultiRegionConsistency.STRONG;
    if (history !== undefined && isStrong) {
      throw new Error(
        `${this.node.path} has a history and strong consistency: DynamoDB has no ttl there, so it would grow for ever`,
      );
    }
    checkRegionIsSet(this, given);
    this.encryption = encryption;
    const table = new TableV2(this, "Resource", {
      partitionKey: { name: attributeNames.partitionKey, type: AttributeType.STRING },
      sortKey: { name: attributeNames.sortKey, type: AttributeType.STRING },
      ...(isStrong ? {} : { timeToLiveAttribute: attributeNames.timeToLive }),
      billing: Billing.onDemand(),
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
      ...asGiven,
      encryption,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled },
      ...(stream ? { dynamoStream: StreamViewType.NEW_AND_OLD_IMAGES } : {}),
    });
    // By this tag, the command line finds the table if the user names none.
    Tags.of(table).add("leasehold", "true");
    // The library's own types disagree under exactOptionalPropertyTypes.
    this.table = table as ITableV2;
    // TableV2 has an ARN even without a stream. Replicas bring a stream of the same kind.
    this.tableStreamArn = stream || replicas.length > 0 ? table.tableStreamArn : undefined;
    this.replicaRegions = replicas.map(({ region }) => region);
    this.multiRegionConsistency = multiRegionConsistency;
    this.history = history && new LeaseHistory(this, "History", { table: this, keepFor: history });
    if (replicas.length > 0 && !isStrong) {
      Annotations.of(this).addWarningV2(
        "@leasehold/cdk:replicasNotStronglyConsistent",
        "replicas that follow with a delay let a second holder in: use each lock in one region only, " +
          "or set multiRegionConsistency to MultiRegionConsistency.STRONG, which has neither ttl nor transactions",
      );
    }
  }
}

/** The form of KMS keys and replicas depends on the region, and the library's own errors do not say what to set. */
function checkRegionIsSet(table: LeaseTable, { encryption, replicas, witnessRegion }: LeaseTableProps): void {
  const stack = Stack.of(table);
  if (!Token.isUnresolved(stack.region)) return;
  const prop =
    (encryption !== undefined && encryption.type !== TableEncryption.DEFAULT && "encryption") ||
    (replicas !== undefined && replicas.length > 0 && "replicas") ||
    (witnessRegion !== undefined && "witnessRegion");
  if (!prop) return;
  throw new Error(
    `${prop} of ${table.node.path} needs to know the region, which the stack ${stack.node.path} leaves open: ` +
      'set env.region of the stack, as in { env: { region: "eu-west-1" } }',
  );
}

const attributeKinds: Kinds<TableAttributesV2> = {
  tableArn: aText,
  tableName: aText,
  tableId: aText,
  tableStreamArn: aText,
  encryptionKey: having("a key of KMS", "keyArn"),
  globalIndexes: aListOf(aText),
  localIndexes: aListOf(aText),
  grantIndexPermissions: aFlag,
};

class ImportedLeaseTable extends LeaseTableBase {
  readonly table: ITableV2;
  readonly tableStreamArn: string | undefined;
  readonly encryption = undefined;
  readonly replicaRegions: string[] = [];
  readonly multiRegionConsistency = undefined;
  readonly history = undefined;

  constructor(scope: Construct, id: string, attributes: TableAttributesV2) {
    super(scope, id);
    const given = checkProps(attributes, attributeKinds);
    this.table = TableV2.fromTableAttributes(this, "Resource", given);
    this.tableStreamArn = given.tableStreamArn;
  }
}
