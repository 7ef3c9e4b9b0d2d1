/**
 * How a store's requests travel to DynamoDB, whichever client sends them: what a transport is asked, and what it tells of
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
import type { DynamoDBSender } from "../options/options.ts";
import type { CallOptions } from "../store.ts";
import type { ServiceTime } from "../time/service-clock.ts";
import { fateOf } from "./attempt-fate.ts";
import type { Attempts } from "./errors.ts";

/** The operations of DynamoDB's API that a lease table needs, with what is sent and what comes back. */
export interface Operations {
  UpdateItem: [UpdateItemCommandInput, UpdateItemCommandOutput];
  BatchExecuteStatement: [BatchExecuteStatementCommandInput, BatchExecuteStatementCommandOutput];
  TransactWriteItems: [TransactWriteItemsCommandInput, TransactWriteItemsCommandOutput];
  GetItem: [GetItemCommandInput, GetItemCommandOutput];
  Query: [QueryCommandInput, QueryCommandOutput];
  Scan: [ScanCommandInput, ScanCommandOutput];
}

/** Sends requests to DynamoDB, and again where that can help. */
export interface Transport {
  /** What {@link locationOf} asks for the region and the endpoint. */
  readonly sender: DynamoDBSender;
  /**
   * Sends one request. Rejects with what the last attempt said: an error of the service's has its `name`, and its other
   * members beside it. Rejects promptly once the call's signal aborts.
   */
  send<Operation extends keyof Operations>(
    operation: Operation,
    input: Operations[Operation][0],
    attempts: CallAttempts,
  ): Promise<Operations[Operation][1]>;
}

/** The Date header's resolution: it names the second in which the answer was made. */
const dateResolutionMs = 1000;

/** What one call's attempts on the wire have shown. */
export class CallAttempts implements Attempts {
  readonly call: CallOptions;
  count = 0;
  lastError: unknown;
  /** How many attempts were sent without an answer, the one under way included. */
  #unanswered = 0;
  #isUnderWay = false;

  constructor(call: CallOptions) {
    this.call = call;
  }

  /**
   * Counts an attempt that is about to be sent; throws where the request has become too old for that. Gives what is to be
   * called with the headers of its answer. An answer that is not DynamoDB's, as a proxy's page is, tells nothing.
   */
  begin(): (headers: AnswerHeaders) => void {
    if (!this.call.isCurrent()) throw new Error("the request was too old to be sent");
    this.count += 1;
    this.#unanswered += 1;
    this.#isUnderWay = true;
    const answered = this.call.timed?.();
    return ({ date, "content-type": type = "" }) => {
      if (type.startsWith("application/x-amz-json-1.0")) answered?.(timeIn(date));
    };
  }

  /** Takes note of what has become of the attempt under way, if there is one: it was answered, or has met an error. */
  end(error?: unknown): void {
    const isKnown = error === undefined || fateOf(error) !== "sent";
    if (this.#isUnderWay && isKnown) this.#unanswered -= 1;
    this.#isUnderWay = false;
  }

  /** Whether an attempt may have landed, or may still land, that no answer tells of. */
  get mayHaveLanded(): boolean {
    return this.#unanswered > 0;
  }
}

/** The headers of an answer that are read here. */
export interface AnswerHeaders {
  readonly date?: string | undefined;
  readonly "content-type"?: string | undefined;
}

/** Reads the service's time from an answer's Date header; undefined where there is none that is valid. */
function timeIn(date: string | undefined): ServiceTime | undefined {
  const earliest = parseHttpDate(date);
  return earliest === undefined ? undefined : { earliest, latest: earliest + dateResolutionMs };
}

/**
 * Reads a date in the one form that HTTP has for it, such as "Sun, 22 Nov 2026 12:00:00 GMT", in epoch milliseconds;
 * undefined for any other text. Date.parse alone takes "5" for a year, and a time without a zone for a local one.
 */
export function parseHttpDate(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? "");
  return !Number.isNaN(time) && new Date(time).toUTCString() === date ? time : undefined;
}
