import { DeleteItemCommand, type DynamoDBClient, paginateScan } from "@aws-sdk/client-dynamodb";
import { attributeNames } from "@leasehold/client/schema";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { AcceptanceProblem } from "./problems.ts";

const { partitionKey, sortKey } = attributeNames;

interface Keyed {
  readonly Key?: Record<string, { readonly S?: string | undefined } | undefined>;
}

interface Statement {
  readonly Statement?: string;
  readonly Parameters?: readonly { readonly S?: string | undefined }[];
}

interface Written extends Keyed {
  readonly TransactItems?: readonly Record<string, Keyed | undefined>[];
  readonly Statements?: readonly Statement[];
}

const reads: ReadonlySet<string> = new Set(["GetItem", "Query", "Scan"]);

function operationOf(commandName: unknown): string {
  return String(commandName).replace(/Command$/, "");
}

/** Keeps a client's writes to the keys of acceptance: any other is refused here, and never sent. */
export function keepToKeySpace({ middlewareStack }: DynamoDBClient): void {
  middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const name = operationOf(commandName);
        if (reads.has(name)) return next(args);
        const keys = keysOf(args.input as Written);
        const isOurs = (key: string | undefined): boolean => key?.startsWith(acceptanceKeyPrefix) ?? false;
        if (keys.length > 0 && keys.every(isOurs)) return next(args);
        throw new AcceptanceProblem(
          "OUTSIDE_KEY_SPACE",
          `${name} would write ${keys.find((key) => !isOurs(key))}, which is not a key of acceptance's`,
        );
      },
    { step: "initialize", priority: "high", name: "keySpace" },
  );
}

/**
 * Makes all of a client's reads consistent. A contract test looks once after a write; on AWS, a read that may lag could
 * miss it, and nothing would be wrong.
 */
export function readConsistently({ middlewareStack }: DynamoDBClient): void {
  middlewareStack.add(
    (next, { commandName }) =>
      (args) =>
        next(
          reads.has(operationOf(commandName))
            ? { ...args, input: { ...args.input, ConsistentRead: true } }
            : args,
        ),
    { step: "initialize", name: "consistentReads" },
  );
}

/** The partition keys that a write names; undefined for one that cannot be told. */
function keysOf({ Key, TransactItems, Statements }: Written): (string | undefined)[] {
  const keyOf = (keyed: Keyed | undefined): string | undefined => keyed?.Key?.[partitionKey]?.S;
  if (TransactItems !== undefined) {
    return TransactItems.flatMap((entry) => Object.values(entry).map((keyed) => keyOf(keyed)));
  }
  if (Statements !== undefined) return Statements.map(keyOfStatement);
  return [keyOf(Key && { Key })];
}

/** The client's statements end with: WHERE "pk" = ? AND "sk" = ? AND … */
function keyOfStatement({ Statement = "", Parameters = [] }: Statement): string | undefined {
  const [assignments = "", ...conditions] = Statement.split(`WHERE "${partitionKey}" = ?`);
  return conditions.length === 1 ? Parameters[assignments.split("?").length - 1]?.S : undefined;
}

/** One by one, a thousand items would take a minute from a distance. */
const deletedTogether = 20;

/** Deletes every item under the keys of acceptance, and gives how many there were. Reads the whole table. */
export async function sweep(dynamodb: DynamoDBClient, tableName: string): Promise<number> {
  let deleted = 0;
  for await (const { Items = [] } of scanOf(dynamodb, tableName)) {
    // The projection leaves nothing but the key.
    const deletions = Items.map((Key) => new DeleteItemCommand({ TableName: tableName, Key }));
    for (let begin = 0; begin < deletions.length; begin += deletedTogether) {
      const some = deletions.slice(begin, begin + deletedTogether);
      await Promise.all(some.map((deletion) => dynamodb.send(deletion)));
      deleted += some.length;
    }
  }
  return deleted;
}

/** Names what is under the keys of acceptance, as `key sort-key`. Reads the whole table. */
export async function leftItems(dynamodb: DynamoDBClient, tableName: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { Items = [] } of scanOf(dynamodb, tableName)) {
    names.push(...Items.map((item) => `${item[partitionKey]?.S} ${item[sortKey]?.S}`));
  }
  return names;
}

function scanOf(client: DynamoDBClient, TableName: string): ReturnType<typeof paginateScan> {
  return paginateScan(
    { client },
    {
      TableName,
      ConsistentRead: true,
      FilterExpression: "begins_with(#pk, :prefix)",
      ProjectionExpression: "#pk, #sk",
      ExpressionAttributeNames: { "#pk": partitionKey, "#sk": sortKey },
      ExpressionAttributeValues: { ":prefix": { S: acceptanceKeyPrefix } },
    },
  );
}
