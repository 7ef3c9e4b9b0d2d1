import {
  type AttributeValue,
  BatchExecuteStatementCommand,
  ConditionalCheckFailedException,
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { expressionValues, fromAttributeValues, toAttributeValues } from "../attribute-values.ts";
import type { DynamoDBSender } from "../options.ts";
import type { ItemKey } from "../schema.ts";
import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "../store.ts";
import type { Clock } from "../time/clock.ts";
import { toLeaseError } from "./errors.ts";
import { toStatement } from "./partiql.ts";
import { Trace } from "./trace.ts";
import { refusalsOf, toTransactItem } from "./transactions.ts";

/** DynamoDB's limit for one BatchExecuteStatement. */
const statementsPerBatch = 25;

/** Keeps leases in a DynamoDB table. */
export class DynamoDBLeaseStore implements LeaseStore {
  readonly tableName: string;
  readonly #dynamodb: DynamoDBSender;
  readonly #clock: Clock;
  /** Cleared for good when the service, or a policy, does not allow PartiQL. */
  #canBatch = true;

  constructor(tableName: string, dynamodb: DynamoDBSender, clock: Clock) {
    this.tableName = tableName;
    this.#dynamodb = dynamodb;
    this.#clock = clock;
  }

  async update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const command = new UpdateItemCommand({
      TableName: this.tableName,
      Key: toKey(request.key),
      UpdateExpression: request.update,
      ConditionExpression: request.condition,
      ExpressionAttributeNames: { ...request.names },
      ExpressionAttributeValues: toAttributeValues(request.values),
      ReturnValues: request.returnsItem ? "ALL_NEW" : "NONE",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    const trace = new Trace(this.#clock, command, options);
    try {
      const { Attributes } = await this.#dynamodb.send(command, { abortSignal: options.signal });
      return resultOf(true, Attributes, trace);
    } catch (error) {
      // By name as well: the user's client may come from another copy of the SDK.
      const { name, Item } = error as ConditionalCheckFailedException;
      if (error instanceof ConditionalCheckFailedException || name === "ConditionalCheckFailedException") {
        return resultOf(false, Item, trace);
      }
      throw toLeaseError(error, this.tableName, options.signal, trace);
    }
  }

  async updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | undefined)[]> {
    const batches: Promise<readonly (UpdateResult | undefined)[]>[] = [];
    for (let start = 0; start < requests.length; start += statementsPerBatch) {
      batches.push(this.#updateBatch(requests.slice(start, start + statementsPerBatch), options));
    }
    return (await Promise.all(batches)).flat();
  }

  async #updateBatch(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | undefined)[]> {
    const unknown = requests.map(() => undefined);
    if (!this.#canBatch) return unknown;
    const command = new BatchExecuteStatementCommand({
      Statements: requests.map((request) => toStatement(this.tableName, request)),
    });
    const trace = new Trace(this.#clock, command, options);
    try {
      const { Responses = [] } = await this.#dynamodb.send(command, { abortSignal: options.signal });
      if (Responses.some((response) => isUnsupported(response.Error?.Code))) this.#canBatch = false;
      // A refusal is left to a write of its own, whose answer brings the item that refused it.
      return requests.map((_, index) => {
        const item = Responses[index]?.Item;
        return item && resultOf(true, item, trace);
      });
    } catch (error) {
      if (isUnsupported((error as Error).name)) this.#canBatch = false;
      return unknown;
    }
  }

  async transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult> {
    // The SDK gives every copy of the request the same token, so that one that landed is not refused by itself.
    const command = new TransactWriteItemsCommand({
      TransactItems: entries.map((entry) => toTransactItem(this.tableName, entry)),
    });
    const trace = new Trace(this.#clock, command, options);
    const outcome = (applied: boolean, refusals: TransactionResult["refusals"]): TransactionResult => ({
      applied,
      refusals,
      offset: trace.offset,
      retried: trace.count > 1,
    });
    try {
      await this.#dynamodb.send(command, { abortSignal: options.signal });
      return outcome(true, []);
    } catch (error) {
      const refusals = refusalsOf(error);
      if (refusals !== undefined) return outcome(false, refusals);
      throw toLeaseError(error, this.tableName, options.signal, trace);
    }
  }

  async query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    const command = new QueryCommand({
      TableName: this.tableName,
      KeyConditionExpression: request.keyCondition,
      ExpressionAttributeNames: { ...request.names },
      ExpressionAttributeValues: toAttributeValues(request.values),
      ConsistentRead: request.consistent,
      ScanIndexForward: request.descending !== true,
      ...(request.limit === undefined ? {} : { Limit: request.limit }),
      ...(request.after ? { ExclusiveStartKey: toKey(request.after) } : {}),
    });
    return pageOf(
      await this.#read(command, options, () => this.#dynamodb.send(command, { abortSignal: options.signal })),
    );
  }

  async get(request: GetRequest, options: CallOptions): Promise<Item | undefined> {
    const command = new GetItemCommand({
      TableName: this.tableName,
      Key: toKey(request.key),
      ConsistentRead: request.consistent,
    });
    const { Item } = await this.#read(command, options, () =>
      this.#dynamodb.send(command, { abortSignal: options.signal }),
    );
    return fromAttributeValues(Item);
  }

  async scan(request: ScanRequest, options: CallOptions): Promise<ScanPage> {
    const command = new ScanCommand({
      TableName: this.tableName,
      FilterExpression: request.filter,
      ExpressionAttributeNames: { ...request.names },
      ...expressionValues(request.values),
      Limit: request.pageSize,
      ...(request.after ? { ExclusiveStartKey: toKey(request.after) } : {}),
    });
    return pageOf(
      await this.#read(command, options, () => this.#dynamodb.send(command, { abortSignal: options.signal })),
    );
  }

  async #read<Output>(
    command: ConstructorParameters<typeof Trace>[1],
    options: CallOptions,
    send: () => Promise<Output>,
  ): Promise<Output> {
    const trace = new Trace(this.#clock, command, options);
    try {
      return await send();
    } catch (error) {
      throw toLeaseError(error, this.tableName, options.signal, trace);
    }
  }
}

function resultOf(
  applied: boolean,
  item: Record<string, AttributeValue> | undefined,
  { offset, count }: Trace,
): UpdateResult {
  return { applied, item: fromAttributeValues(item), offset, retried: count > 1 };
}

/** Errors that say that this service or policy will never take the batch. */
function isUnsupported(code: string | undefined): boolean {
  return [
    "AccessDenied",
    "AccessDeniedException",
    "UnknownOperationException",
    "ValidationError",
    "ValidationException",
  ].includes(code ?? "");
}

function pageOf(page: {
  readonly Items?: Record<string, AttributeValue>[] | undefined;
  readonly LastEvaluatedKey?: Record<string, AttributeValue> | undefined;
}): ScanPage {
  const items = (page.Items ?? []).map((item) => fromAttributeValues(item) ?? {});
  const next = fromAttributeValues(page.LastEvaluatedKey) as ItemKey | undefined;
  return { items, ...(next ? { next } : {}) };
}

function toKey(key: ItemKey): Record<string, AttributeValue> {
  return toAttributeValues({ ...key });
}

/** Tells in which form the commands of a user's client take values. */
export function isDocumentClient(dynamodb: DynamoDBSender): boolean {
  // Only the document client is made by a static method from another client; it marks that client's config, too.
  return typeof (dynamodb.constructor as Partial<{ from: unknown }>).from === "function";
}
