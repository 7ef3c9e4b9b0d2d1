/**
 * A call, under the lock, of a function or a service without its own locking code.
 *
 *     MarkCall ─▶ Run ─▶ UnmarkCall ─▶ Returned
 *        │ refused  └─ it fails ─▶ LetCallEnd, if it may still run ─▶ UnmarkFailed ─▶ RunFailed
 *        └─▶ LetEarlierEnd ─▶ TakeOverCall ─▶ Run
 *
 * No call begins while another may still run. If an answer leaves open whether a call is under way, that call must have
 * ended before the next call, or before the release. If a run is stopped during a call, it leaves its mark: the next
 * run waits until that call must have ended. Runs with permits leave no marks: their calls overlap anyway.
 */
import { endCalls, markCalls, takeOverCalls } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import { CustomState, Fail, type IChainable, Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { jsonata, literal, refused, call as sdkCall } from "../workflow/asl.ts";
import { aYear } from "../workflow/durations.ts";
import { placed } from "../workflow/lease-requests.ts";
import type { TargetSettings } from "./job-target.ts";

/** A call, and the time after which it has ended. */
export interface LockedCall {
  /** What is called. */
  readonly what: "function" | "task";
  /** The Task state that makes the call, with its retries and without its exits. */
  readonly task: Readonly<Record<string, unknown>>;
  /** JSONata for what it returns. */
  readonly result: string;
  /** Errors that leave open whether the call is under way. */
  readonly unclear: readonly string[];
  /** Seconds after which the call has ended in that case. */
  readonly endsWithin: number;
  /** Errors after which the call is being stopped, as after the stop of its run. */
  readonly stopping?: readonly string[];
  /** Seconds after which the call of a stopped run has ended. */
  readonly stopsWithin: number;
}

/** The workflow's input, unchanged. */
export const input = "$states.context.Execution.Input";

/** The input with the fencing token: by that token, work protects its writes even after the lease was lost. */
export const fencedInput: string =
  `$type(${input}) = 'object' ? ` + `$merge([${input}, {'fencingToken': $lease.fencingToken}]) : ${input}`;

/**
 * A result, if it fits into an execution's output. A character has at most 4 bytes, so a longer text could be too
 * large.
 */
export function shortened(what: LockedCall["what"], result: string): string {
  const omitted = literal(`what the ${what} returned is too long to be kept`);
  return jsonata(`$length($string(${result})) <= 60000 ? ${result} : {'omitted': ${omitted}}`);
}

/** The error of a call whose data exceed Step Functions' limit. */
function tooLarge(what: LockedCall["what"]): object {
  return {
    Error: what === "function" ? "FunctionAnswerTooLargeError" : "TaskAnswerTooLargeError",
    Cause:
      `what the ${what} was sent, or what it returned, is more than the 256 KiB that Step Functions takes: ` +
      "keep it elsewhere, and return where it is",
  };
}

/** When a call is repeated. */
export interface CallRetries {
  /** Errors that say that nothing was started. */
  readonly noRoom: readonly string[];
  /** What happens after an error that leaves open whether the call is under way. */
  readonly afterUnclear: object;
  /** How often a call that has failed is repeated. */
  readonly retryAttempts: number;
}

/**
 * Repeats a call. One that was not started: after 2, 4, 8, 16 and 32 seconds, then each minute while the run is young
 * enough.
 */
export function retriesOf(
  { noRoom, afterUnclear, retryAttempts }: CallRetries,
  maxEventAge: Duration,
): object[] {
  return [
    {
      ErrorEquals: noRoom,
      IntervalSeconds: 2,
      BackoffRate: 2,
      MaxDelaySeconds: 60,
      MaxAttempts: 5 + Math.max(0, Math.ceil((maxEventAge.toSeconds() - 62) / 60)),
    },
    afterUnclear,
    {
      ErrorEquals: ["States.ALL"],
      IntervalSeconds: 5,
      BackoffRate: 2,
      MaxDelaySeconds: 600,
      MaxAttempts: retryAttempts,
      JitterStrategy: "FULL",
    },
  ];
}

/** Returns the states that make a call under the lock. */
export function lockedCall(job: Construct, { table, permits }: TargetSettings, call: LockedCall): IChainable {
  const tableName = table.nameFor(job);
  const run = new CustomState(job, "Run", {
    stateJson: { ...call.task, Assign: { callResult: shortened(call.what, call.result) } },
  });
  const mark = (id: string, request: Mark): CustomState =>
    new CustomState(job, id, { stateJson: markState(tableName, request) });
  const pause = (id: string, seconds: number): Wait =>
    Wait.jsonata(job, id, { time: WaitTime.duration(Duration.seconds(seconds)) });

  const returned = Pass.jsonata(job, "Returned", { outputs: jsonata("$callResult") });
  const isMarked = permits === undefined;
  run.next(isMarked ? mark("UnmarkCall", endCalls).addCatch(returned).next(returned) : returned);

  const failed = Fail.jsonata(job, "RunFailed", {
    error: jsonata("$callError.Error"),
    cause: jsonata("$exists($callError.Cause) ? $callError.Cause : 'no cause was given'"),
  });
  const unmarked = isMarked ? mark("UnmarkFailed", endCalls).addCatch(failed).next(failed) : failed;
  const failure = { assign: { callError: jsonata("$states.errorOutput") } };
  const { unclear, stopping = [] } = call;
  run.addCatch(pause("LetCallEnd", call.endsWithin).next(unmarked), { ...failure, errors: [...unclear] });
  // The next run sees the mark, and waits.
  if (stopping.length > 0) run.addCatch(failed, { ...failure, errors: [...stopping] });
  run
    .addCatch(unmarked, { assign: { callError: tooLarge(call.what) }, errors: ["States.DataLimitExceeded"] })
    .addCatch(unmarked, failure);
  if (!isMarked) return run;

  const overtaken = Fail.jsonata(job, "Overtaken", {
    error: "LeaseLostError",
    cause: "a later run makes the call",
  });
  const takeOver = mark("TakeOverCall", takeOverCalls).addCatch(overtaken, { errors: [refused] });
  const waiting = pause("LetEarlierEnd", call.stopsWithin).next(takeOver);
  takeOver.next(run);
  return mark("MarkCall", markCalls)
    .addCatch(waiting, { errors: [refused] })
    .next(run);
}

type Mark = typeof endCalls;

/** How long a mark is kept: it has to outlast its run, which takes a year at most. */
const markRetentionMs = aYear.plus(Duration.days(7)).toMilliseconds();

/** A write of the mark, beside the lease's item. */
function markState(tableName: string, mark: Mark): Record<string, unknown> {
  const sample = mark({ key: "key", fencingToken: 1, now: 1, retentionMs: 1 });
  const { update, condition, ...write } = placed(sample, {
    ":fence": "$lease.fencingToken",
    ":ttl": `$ceil(($millis() + ${markRetentionMs}) / 1000)`,
  });
  const Key = {
    [attributeNames.partitionKey]: { S: jsonata("$lease.key") },
    [attributeNames.sortKey]: { S: sample.key[attributeNames.sortKey] },
  };
  return sdkCall("dynamodb:updateItem", {
    Arguments: {
      TableName: tableName,
      Key,
      UpdateExpression: update,
      ConditionExpression: condition,
      ...write,
    },
  });
}
