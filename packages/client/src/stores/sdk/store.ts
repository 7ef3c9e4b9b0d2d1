import {
  BatchExecuteStatementCommand,
  GetItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { unlessAborted } from "../../base/abort.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import type { DynamoDBSender } from "../../base/options.ts";
import { createDynamoDBClient, tooOldSdk } from "./client.ts";
import { isConflict } from "./errors.ts";
import { TableStore } from "./table-store.ts";
import {
  type AnswerHeaders,
  type CallAttempts,
  type Operations,
  parseHttpDate,
  type Transport,
  timeRefusals,
} from "./transport.ts";

/** Keeps leases in a DynamoDB table, through a client of the SDK: the user's, or one of its own. */
export class DynamoDBLeaseStore extends TableStore {
  constructor(tableName: string, dynamodb: DynamoDBSender | undefined, clock: Clock = systemClock) {
    super(tableName, dynamodb === undefined ? ownTransport() : userTransport(dynamodb), clock);
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

/** The part of an SDK's command or client that is used here; the types of the two SDK packages differ. */
interface WithMiddleware {
  readonly middlewareStack: {
    add(
      middleware: (next: (args: Sent) => Promise<Answered>) => (args: Sent) => Promise<Answered>,
      options: object,
    ): void;
  };
}

interface Sent {
  readonly input: OfCall;
  readonly request: OfCall & { readonly body?: unknown };
}

/** The SDK does not send a member with a symbol. A WeakMap would cost 1 to 2 µs a request. */
const attemptsKey = Symbol("attempts");

/** The input or a request of a call of {@link ownTransport}. */
interface OfCall {
  [attemptsKey]?: CallAttempts;
}

interface Answered {
  readonly response: WithHeaders;
}

/** What an attempt fails with, if the service has refused it. */
interface AttemptFailure {
  readonly name?: string;
  readonly $response?: WithHeaders;
  readonly $metadata?: object;
}

interface WithHeaders {
  readonly headers?: AnswerHeaders;
}

/**
 * A middleware before the deserializer and after the retries sees every attempt with its parsed error. It also comes
 * after the signing: DynamoDB refuses a request that was frozen after that, because its signature is too old.
 */
const traceOptions = { name: "leaseholdTrace", step: "deserialize", priority: "high" };

/**
 * Sends commands through a user's client of the SDK, which repeats them. The client stays as it is. It does not end for
 * the signal while it fetches credentials, and older ones pause in spite of it: the call is raced with the signal.
 */
function userTransport(sender: DynamoDBSender): Transport {
  return {
    sender,
    send: (operation, input, attempts) => {
      const command = newCommand(operation, input);
      command.middlewareStack.add(
        (next) => (args) => attempt(attempts, args, () => next(args)),
        traceOptions,
      );
      return unlessAborted(
        sender.send(command as never, { abortSignal: attempts.call.signal }),
        attempts.call.signal,
      );
    },
  };
}

/**
 * Sends commands through a client that nobody else can reach. So the SDK may resolve each operation's middleware once,
 * and not for each request: 5 % less CPU. It does so only for calls without options. So a call's own parts travel with
 * its input and its requests. The SDK does not know the call's signal, and would pause between two attempts in spite of
 * it: the call is raced with the signal.
 */
function ownTransport(): Transport {
  const sender = createDynamoDBClient();
  (sender as WithMiddleware).middlewareStack.add(
    (next) => (args) => {
      const attempts = args.input[attemptsKey] as CallAttempts;
      args.request[attemptsKey] = attempts;
      return attempt(attempts, args, () => next(args));
    },
    traceOptions,
  );
  const { requestHandler } = sender.config;
  const handle = requestHandler.handle.bind(requestHandler);
  // A request for credentials belongs to no call.
  requestHandler.handle = (request: OfCall, options) =>
    handle(request as never, { abortSignal: request[attemptsKey]?.call.signal, ...options } as object);
  return {
    sender,
    send: (operation, input, attempts) => {
      (input as OfCall)[attemptsKey] = attempts;
      return unlessAborted(sender.send(newCommand(operation, input) as never), attempts.call.signal);
    },
  };
}

function newCommand(operation: keyof Operations, input: object): WithMiddleware {
  return new (commands[operation] as unknown as new (input: object) => WithMiddleware)(input);
}

async function attempt(attempts: CallAttempts, sent: Sent, send: () => Promise<Answered>): Promise<Answered> {
  const answered = attempts.begin();
  try {
    const result = await send();
    answered(result.response.headers ?? {});
    return result;
  } catch (error) {
    attempts.lastError = error;
    attempts.end(error);
    if (isWithoutItem(error, sent)) throw tooOldSdk();
    const { $response, $metadata } = error as AttemptFailure;
    // A conflict passes in milliseconds, but the SDK repeats only errors with this mark.
    if (isConflict(error)) Object.assign(error as Error, { $retryable: {} });
    // The SDK then corrects its clock. Of calls at the same time, it sees the correction in one, and repeats that one.
    if (isClockRefusal(error as AttemptFailure)) Object.assign($metadata ?? {}, { clockSkewCorrected: true });
    if ($response !== undefined) answered($response.headers ?? {});
    throw error;
  }
}

/** Whether the service has refused a request because the machine's clock is wrong, by which the SDK signs. */
function isClockRefusal({ name = "", $response }: AttemptFailure): boolean {
  const aheadMs = (parseHttpDate($response?.headers?.date) ?? Number.NaN) - Date.now();
  return timeRefusals.test(name) && Math.abs(aheadMs) > harmlessSkewMs;
}

/** DynamoDB accepts signatures within five minutes. */
const harmlessSkewMs = 4 * 60_000;

/**
 * Whether a refusal lacks the refusing item, because an SDK from before July 2023 has dropped the parameter for it.
 * Without the item, a lock would look free and never be taken over.
 */
function isWithoutItem(error: unknown, { request }: Sent): boolean {
  const { name, Item } = error as { readonly name?: unknown; readonly Item?: unknown };
  if (name !== "ConditionalCheckFailedException" || Item !== undefined) return false;
  return typeof request.body === "string" && !request.body.includes("ReturnValuesOnConditionCheckFailure");
}
