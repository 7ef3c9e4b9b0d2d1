/**
 * The transport of a store's requests to DynamoDB, whichever client sends them: its interface, and what it reports of
 * its attempts. A request is counted before it is sent, so that no copy on the wire is ever forgotten.
 */
import type {
  BatchExecuteStatementCommandInput,
  BatchExecuteStatementCommandOutput,
  GetItemCommandInput,
  GetItemCommandOutput,
  QueryCommandInput,
  QueryCommandOutput,
  ScanCommandInput,
  ScanCommandOutput,
  TransactWriteItemsCommandInput,
  TransactWriteItemsCommandOutput,
  UpdateItemCommandInput,
  UpdateItemCommandOutput,
} from "@aws-sdk/client-dynamodb";
import type { DynamoDBSender } from "../../base/options.ts";
import type { ServiceTime } from "../../base/service-clock.ts";
import type { CallOptions } from "../../base/store.ts";
import { type Attempts, fateOf } from "./errors.ts";

/** The operations of DynamoDB's API that a lease table needs, with their input and output. */
export interface Operations {
  UpdateItem: [UpdateItemCommandInput, UpdateItemCommandOutput];
  BatchExecuteStatement: [BatchExecuteStatementCommandInput, BatchExecuteStatementCommandOutput];
  TransactWriteItems: [TransactWriteItemsCommandInput, TransactWriteItemsCommandOutput];
  GetItem: [GetItemCommandInput, GetItemCommandOutput];
  Query: [QueryCommandInput, QueryCommandOutput];
  Scan: [ScanCommandInput, ScanCommandOutput];
}

/** Sends requests to DynamoDB, and repeats them if that can help. */
export interface Transport {
  /** What {@link locationOf} asks for the region and the endpoint. */
  readonly sender: DynamoDBSender;
  /**
   * Sends one request. Rejects with the last attempt's error; a service error has the service's `name` and its other
   * members. Rejects promptly once the call's signal aborts.
   */
  send<Operation extends keyof Operations>(
    operation: Operation,
    input: Operations[Operation][0],
    attempts: CallAttempts,
  ): Promise<Operations[Operation][1]>;
}

/** The Date header's resolution: it names the second in which the service made the answer. */
const dateResolutionMs = 1000;

/** What one call's attempts on the wire have shown. */
export class CallAttempts implements Attempts {
  readonly call: CallOptions;
  count = 0;
  /** The error of the last attempt, unless that attempt is under way. */
  lastError: unknown;
  /** How many attempts were sent and not refused, including the one under way. */
  #unanswered = 0;
  #isUnderWay = false;

  constructor(call: CallOptions) {
    this.call = call;
  }

  /**
   * Counts an attempt that is about to be sent. Throws if the request has become too old. Call the returned function
   * with the headers of the answer. An answer that is not DynamoDB's, such as a proxy's page, tells no time.
   */
  begin(): (headers: AnswerHeaders) => void {
    if (!this.call.isCurrent()) throw new Error("the request was too old to be sent");
    this.lastError = undefined;
    this.count += 1;
    this.#unanswered += 1;
    this.#isUnderWay = true;
    const answered = this.call.timed?.();
    return ({ date, "content-type": type = "" }) => {
      if (type.startsWith("application/x-amz-json-1.0")) answered?.(serviceTimeOf(date));
    };
  }

  /** Notes that the attempt under way, if there is one, has failed. One that succeeds has landed, whatever comes after it. */
  end(error: unknown): void {
    if (this.#isUnderWay && fateOf(error) !== "sent") this.#unanswered -= 1;
    this.#isUnderWay = false;
  }

  /** Whether an attempt may have landed, or may still land, without an answer. */
  get mayHaveLanded(): boolean {
    return this.#unanswered > 0;
  }
}

/** The headers that are read here. */
export interface AnswerHeaders {
  readonly date?: string | undefined;
  readonly "content-type"?: string | undefined;
}

/** Reads the service's time from an answer's Date header; undefined without a valid one. */
export function serviceTimeOf(date: string | undefined): ServiceTime | undefined {
  const earliest = parseHttpDate(date);
  return earliest === undefined ? undefined : { earliest, latest: earliest + dateResolutionMs };
}

/**
 * Reads a date in HTTP's only form, such as "Sun, 22 Nov 2026 12:00:00 GMT", in epoch milliseconds; undefined for any
 * other text. Date.parse alone would read "5" as a year, and a time without a zone as a local time.
 */
export function parseHttpDate(date: string | undefined): number | undefined {
  if (date !== lastRead.date) {
    const time = Date.parse(date ?? "");
    const isValid = !Number.isNaN(time) && new Date(time).toUTCString() === date;
    lastRead = { date, time: isValid ? time : undefined };
  }
  return lastRead.time;
}

/** All answers of one second have the same date, and to read it takes 2 to 4 µs. */
let lastRead: { readonly date: string | undefined; readonly time: number | undefined } = {
  date: undefined,
  time: undefined,
};

/** DynamoDB's errors for a signature whose time is too far from its own. */
export const timeRefusals: RegExp =
  /^(InvalidSignature|SignatureDoesNotMatch|Request(Expired|InTheFuture|TimeTooSkewed))/;
