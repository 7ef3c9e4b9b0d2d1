import {
  BatchExecuteStatementCommand,
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../options/options.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import { tooOldSdk } from "./client.ts";
import { isConflict } from "./errors.ts";
import { TableStore } from "./table-store.ts";
import type { AnswerHeaders, CallAttempts, Operations, Transport } from "./transport.ts";

/** Keeps leases in a DynamoDB table, through a client of the SDK. */
export class DynamoDBLeaseStore extends TableStore {
  constructor(tableName: string, dynamodb: DynamoDBSender, clock: Clock = systemClock) {
    super(tableName, new SdkTransport(dynamodb), clock);
  }
}

const commands = {
  UpdateItem: UpdateItemCommand,
  BatchExecuteStatement: BatchExecuteStatementCommand,
  TransactWriteItems: TransactWriteItemsCommand,
  GetItem: GetItemCommand,
  Query: QueryCommand,
  Scan: ScanCommand,
};

/** The part of an SDK's command that is used here; the types of the two SDK packages differ. */
interface Command {
  readonly middlewareStack: {
    add(
      middleware: (next: (args: Sent) => Promise<Answered>) => (args: Sent) => Promise<Answered>,
      options: object,
    ): void;
  };
}

interface Sent {
  readonly request: { readonly body?: unknown };
}

interface Answered {
  readonly response: WithHeaders;
}

interface WithHeaders {
  readonly headers?: AnswerHeaders;
}

/** Sends commands through a client of the SDK, which repeats them. */
class SdkTransport implements Transport {
  readonly sender: DynamoDBSender;

  constructor(dynamodb: DynamoDBSender) {
    this.sender = dynamodb;
  }

  send<Operation extends keyof Operations>(
    operation: Operation,
    input: Operations[Operation][0],
    attempts: CallAttempts,
  ): Promise<Operations[Operation][1]> {
    const command = new (commands[operation] as unknown as new (input: object) => Command)(input);
    // A middleware before the deserializer and after the retries sees every attempt with its parsed error. It also
    // comes after the signing: DynamoDB refuses a request that was frozen after that, because its signature is too old.
    command.middlewareStack.add((next) => (args) => attempt(attempts, args, () => next(args)), {
      name: "leaseholdTrace",
      step: "deserialize",
      priority: "high",
    });
    return this.sender.send(command as never, { abortSignal: attempts.call.signal });
  }
}

async function attempt(attempts: CallAttempts, sent: Sent, send: () => Promise<Answered>): Promise<Answered> {
  const answered = attempts.begin();
  try {
    const result = await send();
    attempts.end();
    answered(result.response.headers ?? {});
    return result;
  } catch (error) {
    attempts.lastError = error;
    attempts.end(error);
    if (isWithoutItem(error, sent)) throw tooOldSdk();
    // A conflict passes in milliseconds, but the SDK repeats only errors with this mark.
    if (isConflict(error)) Object.assign(error as Error, { $retryable: {} });
    const { $response } = error as { readonly $response?: WithHeaders };
    if ($response !== undefined) answered($response.headers ?? {});
    throw error;
  }
}

/**
 * Whether a refusal lacks the refusing item, because an SDK from before July 2023 has dropped the parameter for it.
 * Without the item, a lock would look free and never be taken over.
 */
function isWithoutItem(error: unknown, { request }: Sent): boolean {
  const { name, Item } = error as { readonly name?: unknown; readonly Item?: unknown };
  if (name !== "ConditionalCheckFailedException" || Item !== undefined) return false;
  return typeof request.body === "string" && !request.body.includes("ReturnValuesOnConditionCheckFailure");
}
