import type { AttributeValue, ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { type Clock, systemRandomness } from "../../base/clock.ts";
import type { LeaseError } from "../../base/errors.ts";
import { isMistake } from "../../base/operational.ts";
import type { ItemKey } from "../../base/schema.ts";
import {
  type CallOptions,
  type GetRequest,
  type Item,
  type LeaseStore,
  mostUpdatesTogether,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
  type TransactionEntry,
  type TransactionResult,
  type UpdateRequest,
  type UpdateResult,
} from "../../base/store.ts";
import {
  expressionValues,
  fromAttributeValues,
  refusalsOf,
  toAttributeValues,
  toStatement,
  toTransactItem,
} from "./encoding.ts";
import { isBatchRefusal, rejectionFor, statementError, toItemError } from "./errors.ts";
import { CallAttempts, type Operations, type Transport } from "./transport.ts";

/** A refusal of a transaction brings the item that refused. */
const bringItem = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;

const firstPauseMs = 60_000;
const longestPauseMs = 60 * 60_000;

/**
 * A pause in sending batches, because the service or a policy has just refused one.
 *
 * Policies and credentials change, and a refusal may be temporary. So a batch is tried again after a pause that doubles
 * with each refusal, from a minute up to an hour.
 */
class BatchPause {
  readonly #clock: Clock;
  /** On the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY;
  #nextMs = firstPauseMs;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#clock.monotonic() < this.#until;
  }

  /** A batch has been refused. The results of concurrent batches show nothing new. */
  begin(): void {
    if (this.isOn) return;
    this.#until = this.#clock.monotonic() + this.#nextMs;
    this.#nextMs = Math.min(this.#nextMs * 2, longestPauseMs);
  }

  /** A batch has been served. */
  end(): void {
    this.#until = Number.NEGATIVE_INFINITY;
    this.#nextMs = firstPauseMs;
  }
}

/** Keeps leases in a DynamoDB table, over any transport. */
export class TableStore implements LeaseStore {
  readonly tableName: string;
  readonly #transport: Transport;
  /** During the pause, writes are sent one by one. */
  readonly #batchPause: BatchPause;

  constructor(tableName: string, transport: Transport, clock: Clock) {
    this.tableName = tableName;
    this.#transport = transport;
    this.#batchPause = new BatchPause(clock);
  }

  async update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const input: Operations["UpdateItem"][0] = {
      TableName: this.tableName,
      Key: toAttributeValues(request.key),
      UpdateExpression: request.update,
      ConditionExpression: request.condition,
      ExpressionAttributeNames: request.names,
      ExpressionAttributeValues: expressionValues(request.values),
      ReturnValues: request.returnsItem ? "ALL_NEW" : "NONE",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
    const attempts = new CallAttempts(options);
    try {
      const { Attributes } = await this.#transport.send("UpdateItem", input, attempts);
      return resultOf(true, Attributes, attempts);
    } catch (error) {
      // By name: the user's client may use another copy of the SDK, and the light store has none.
      const { name, Item } = error as ConditionalCheckFailedException;
      if (name === "ConditionalCheckFailedException") return resultOf(false, Item, attempts);
      throw toItemError(error, request) ?? (await this.#rejection(error, attempts));
    }
  }

  async updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    const batches: Promise<readonly (UpdateResult | LeaseError | undefined)[]>[] = [];
    for (let start = 0; start < requests.length; start += mostUpdatesTogether) {
      batches.push(this.#updateBatch(requests.slice(start, start + mostUpdatesTogether), options));
    }
    return (await Promise.all(batches)).flat();
  }

  async #updateBatch(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    const unsettled = requests.map(() => undefined);
    // A statement identifies its table by name alone. With an ARN of another account, that would be another table.
    if (this.#batchPause.isOn || this.tableName.startsWith("arn:")) return unsettled;
    const input = { Statements: requests.map((request) => toStatement(this.tableName, request)) };
    const attempts = new CallAttempts(options);
    try {
      const { Responses = [] } = await this.#transport.send("BatchExecuteStatement", input, attempts);
      // A single statement can be refused only for its key. A policy or an engine without batches refuses all of them.
      const areAllRefused = requests.every((_, index) => isBatchRefusal(Responses[index]?.Error?.Code));
      if (areAllRefused) this.#batchPause.begin();
      else this.#batchPause.end();
      // A refused statement is repeated as a separate write, whose answer brings the item that refused it.
      return requests.map((_, index) => {
        const { Item, Error: error } = Responses[index] ?? {};
        if (Item !== undefined) return resultOf(true, Item, attempts);
        return statementError(error, this.tableName);
      });
    } catch (error) {
      if (isMistake(error)) throw error;
      if (!isBatchRefusal((error as Error).name)) {
        const failure = (await this.#rejection(error, attempts)) as LeaseError;
        return requests.map(() => failure);
      }
      this.#batchPause.begin();
      return unsettled;
    }
  }

  async transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult> {
    const input: Operations["TransactWriteItems"][0] = {
      // The same token in every copy of the request, so that a copy that has landed does not refuse the next.
      ClientRequestToken: systemRandomness.token(),
      TransactItems: entries.map((entry) =>
        toTransactItem(this.tableName, entry, toAttributeValues, bringItem),
      ),
    };
    const attempts = new CallAttempts(options);
    let refusals: TransactionResult["refusals"] | undefined;
    try {
      await this.#transport.send("TransactWriteItems", input, attempts);
    } catch (error) {
      refusals = refusalsOf(error);
      if (refusals === undefined) throw await this.#rejection(error, attempts);
    }
    return { applied: refusals === undefined, refusals: refusals ?? [], retried: attempts.count > 1 };
  }

  async query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    const input: Operations["Query"][0] = {
      TableName: this.tableName,
      KeyConditionExpression: request.keyCondition,
      ExpressionAttributeNames: request.names,
      ExpressionAttributeValues: toAttributeValues(request.values),
      ConsistentRead: request.consistent,
      ScanIndexForward: request.descending !== true,
      Limit: request.limit,
      ExclusiveStartKey: request.after && toAttributeValues(request.after),
    };
    return pageOf(await this.#read("Query", input, options));
  }

  async get(request: GetRequest, options: CallOptions): Promise<Item | undefined> {
    const input = {
      TableName: this.tableName,
      Key: toAttributeValues(request.key),
      ConsistentRead: request.consistent,
    };
    return fromAttributeValues((await this.#read("GetItem", input, options)).Item);
  }

  async scan(request: ScanRequest, options: CallOptions): Promise<ScanPage> {
    const input: Operations["Scan"][0] = {
      TableName: this.tableName,
      FilterExpression: request.filter,
      ExpressionAttributeNames: request.names,
      ExpressionAttributeValues: expressionValues(request.values),
      ExclusiveStartKey: request.after && toAttributeValues(request.after),
    };
    return pageOf(await this.#read("Scan", input, options));
  }

  async #read<Operation extends "Query" | "GetItem" | "Scan">(
    operation: Operation,
    input: Operations[Operation][0],
    options: CallOptions,
  ): Promise<Operations[Operation][1]> {
    const attempts = new CallAttempts(options);
    try {
      return await this.#transport.send(operation, input, attempts);
    } catch (error) {
      throw await this.#rejection(error, attempts);
    }
  }

  #rejection(error: unknown, attempts: CallAttempts): Promise<unknown> {
    const asked = { tableName: this.tableName, dynamodb: this.#transport.sender };
    return rejectionFor(error, asked, attempts.call.signal, attempts);
  }
}

function resultOf(
  applied: boolean,
  item: Record<string, AttributeValue> | undefined,
  { count }: CallAttempts,
): UpdateResult {
  return { applied, item: fromAttributeValues(item), retried: count > 1 };
}

function pageOf(page: {
  readonly Items?: Record<string, AttributeValue>[] | undefined;
  readonly LastEvaluatedKey?: Record<string, AttributeValue> | undefined;
}): ScanPage {
  const items = (page.Items ?? []).map(fromAttributeValues) as Item[];
  return { items, next: fromAttributeValues(page.LastEvaluatedKey) as ItemKey | undefined };
}
