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
import type { LeaseError } from "../errors/errors.ts";
import { isMistake } from "../errors/operational.ts";
import type { DynamoDBSender } from "../options/options.ts";
import type { ItemKey } from "../schema.ts";
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
} from "../store.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import type { ServiceTime } from "../time/service-clock.ts";
import { expressionValues, fromAttributeValues, toAttributeValues } from "./attribute-values.ts";
import { BatchPause } from "./batch-pause.ts";
import {
  type Attempts,
  isBatchRefusal,
  isConflict,
  rejectionFor,
  statementError,
  toItemError,
  toLeaseError,
} from "./errors.ts";
import { toStatement } from "./partiql.ts";
import { refusalsOf, toTransactItem } from "./transactions.ts";

/** Keeps leases in a DynamoDB table. */
export class DynamoDBLeaseStore implements LeaseStore {
  readonly tableName: string;
  readonly #dynamodb: DynamoDBSender;
  /** While it is on, writes are sent one by one. */
  readonly #batchPause: BatchPause;

  constructor(tableName: string, dynamodb: DynamoDBSender, clock: Clock = systemClock) {
    this.tableName = tableName;
    this.#dynamodb = dynamodb;
    this.#batchPause = new BatchPause(clock);
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
    const trace = new Trace(command, options);
    try {
      const { Attributes } = await this.#dynamodb.send(command, { abortSignal: options.signal });
      return resultOf(true, Attributes, trace);
    } catch (error) {
      // By name as well: the user's client may come from another copy of the SDK.
      const { name, Item } = error as ConditionalCheckFailedException;
      if (error instanceof ConditionalCheckFailedException || name === "ConditionalCheckFailedException") {
        return resultOf(false, Item, trace);
      }
      throw toItemError(error, request) ?? (await this.#rejection(error, options, trace));
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
    // A statement names its table by name alone, which would be another table where this one is of another account.
    if (this.#batchPause.isOn || this.tableName.startsWith("arn:")) return unsettled;
    const command = new BatchExecuteStatementCommand({
      Statements: requests.map((request) => toStatement(this.tableName, request)),
    });
    const trace = new Trace(command, options);
    try {
      const { Responses = [] } = await this.#dynamodb.send(command, { abortSignal: options.signal });
      // One statement can be refused for its key alone; a policy or an engine without batches refuses them all.
      const areAllRefused = requests.every((_, index) => isBatchRefusal(Responses[index]?.Error?.Code));
      if (areAllRefused) this.#batchPause.begin();
      else this.#batchPause.end();
      // A statement that was refused is left to a write of its own, whose answer brings the item that refused it.
      return requests.map((_, index) => {
        const { Item, Error: error } = Responses[index] ?? {};
        if (Item !== undefined) return resultOf(true, Item, trace);
        return statementError(error, this.tableName);
      });
    } catch (error) {
      if (isMistake(error)) throw error;
      if (!isBatchRefusal((error as Error).name)) {
        const asked = { tableName: this.tableName, dynamodb: this.#dynamodb };
        const failure = await toLeaseError(error, asked, options.signal, trace);
        return requests.map(() => failure);
      }
      this.#batchPause.begin();
      return unsettled;
    }
  }

  async transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult> {
    // The SDK gives every copy of the request the same token, so that one that landed is not refused by itself.
    const command = new TransactWriteItemsCommand({
      TransactItems: entries.map((entry) => toTransactItem(this.tableName, entry)),
    });
    const trace = new Trace(command, options);
    const outcome = (applied: boolean, refusals: TransactionResult["refusals"]): TransactionResult => ({
      applied,
      refusals,
      retried: trace.count > 1,
    });
    try {
      await this.#dynamodb.send(command, { abortSignal: options.signal });
      return outcome(true, []);
    } catch (error) {
      const refusals = refusalsOf(error);
      if (refusals !== undefined) return outcome(false, refusals);
      throw await this.#rejection(error, options, trace);
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
      ...(request.after ? { ExclusiveStartKey: toKey(request.after) } : {}),
    });
    return pageOf(
      await this.#read(command, options, () => this.#dynamodb.send(command, { abortSignal: options.signal })),
    );
  }

  #rejection(error: unknown, { signal }: CallOptions, trace: Trace): Promise<unknown> {
    const table = { tableName: this.tableName, dynamodb: this.#dynamodb };
    return rejectionFor(error, table, signal, trace);
  }

  async #read<Output>(
    command: ConstructorParameters<typeof Trace>[0],
    options: CallOptions,
    send: () => Promise<Output>,
  ): Promise<Output> {
    const trace = new Trace(command, options);
    try {
      return await send();
    } catch (error) {
      throw await this.#rejection(error, options, trace);
    }
  }
}

function resultOf(
  applied: boolean,
  item: Record<string, AttributeValue> | undefined,
  { count }: Trace,
): UpdateResult {
  return { applied, item: fromAttributeValues(item), retried: count > 1 };
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

/** As much of the SDK's middleware as is used here; its own types differ between the two SDK packages. */
interface Traceable {
  readonly middlewareStack: {
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's middleware types depend on the command.
    add(middleware: (next: any) => (args: any) => Promise<any>, options: object): void;
  };
}

interface WithHeaders {
  readonly headers?: { readonly date?: string };
}

/** What one command's attempts on the wire have shown. */
class Trace implements Attempts {
  readonly #call: CallOptions;
  count = 0;
  lastError: unknown;

  /** Watches a command; the client it is sent through stays as it is. */
  constructor(command: Traceable, call: CallOptions) {
    this.#call = call;
    // In front of the deserializer and behind the retries, a middleware sees every attempt with its error parsed.
    command.middlewareStack.add((next) => (args) => this.#attempt(next, args), {
      name: "leaseholdTrace",
      step: "deserialize",
      priority: "high",
    });
  }

  async #attempt(
    next: (args: unknown) => Promise<{ response: WithHeaders }>,
    args: unknown,
  ): Promise<{ response: WithHeaders }> {
    // Behind the signing too: what is frozen from here on, DynamoDB refuses for the age of its signature.
    if (!this.#call.isCurrent()) throw new Error("the request was too old to be sent");
    this.count += 1;
    const answered = this.#call.timed?.();
    try {
      const result = await next(args);
      answered?.(timeIn(result.response));
      return result;
    } catch (error) {
      this.lastError = error;
      // It passes in milliseconds, but the SDK repeats only what is marked so.
      if (isConflict(error)) Object.assign(error as Error, { $retryable: {} });
      const { $response } = error as { readonly $response?: WithHeaders };
      if ($response !== undefined) answered?.(timeIn($response));
      throw error;
    }
  }
}

/** The Date header's resolution: it names the second in which the answer was made. */
const dateResolutionMs = 1000;

/** Reads the service's time from an answer's Date header; undefined where it is missing or unreadable. */
function timeIn({ headers }: WithHeaders): ServiceTime | undefined {
  const earliest = headers?.date === undefined ? Number.NaN : Date.parse(headers.date);
  return Number.isNaN(earliest) ? undefined : { earliest, latest: earliest + dateResolutionMs };
}
