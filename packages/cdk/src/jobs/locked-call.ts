/**
 * A call of a function or a service that knows nothing of the lock, under the lock.
 *
 *     MarkCall ─▶ Run ─▶ UnmarkCall ─▶ Returned
 *        │ refused  └─ it fails ─▶ LetCallEnd, if it may still run ─▶ UnmarkFailed ─▶ RunFailed
 *        └─▶ LetEarlierEnd ─▶ TakeOverCall ─▶ Run
 *
 * No call begins while another may still run. Where an answer leaves open whether the call is under way, it must have
 * ended before another is made, or the lock is let go. And a run that was stopped with a call under way leaves its mark:
 * the next run waits until that call must have ended. Runs with permits leave no marks: their calls overlap anyway.
 */
import { endCalls, markCalls, takeOverCalls } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { Duration } from "aws-cdk-lib";
import { CustomState, Fail, type IChainable, Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { jsonata, literal, refused, call as sdkCall } from "../workflow/asl.ts";
import { placed } from "../workflow/lease-requests.ts";
import type { TargetSettings } from "./job-target.ts";

/** A call, and when it has ended. */
export interface LockedCall {
  /** The Task state that makes the call, with its retries and without its exits. */
  readonly task: Readonly<Record<string, unknown>>;
  /** JSONata for what the run returns. */
  readonly result: string;
  /** Errors that leave open whether the call is under way. */
  readonly unclear: readonly string[];
  /** Seconds after which it has ended then. */
  readonly endsWithin: number;
  /** Errors after which the call is being stopped, as it is when its run is stopped. */
  readonly stopping?: readonly string[];
  /** Seconds after which a call has ended whose run was stopped. */
  readonly stopsWithin: number;
  /** The error of a call whose data are more than Step Functions takes. */
  readonly tooLarge: { readonly Error: string; readonly Cause: string };
}

/** The workflow's input, unchanged on its way. */
export const input = "$states.context.Execution.Input";

/** The same with the fencing token, by which work protects its writes even after the lease was lost. */
export const fencedInput: string =
  `$type(${input}) = 'object' ? ` + `$merge([${input}, {'fencingToken': $lease.fencingToken}]) : ${input}`;

/**
 * A result, if it may be an execution's. A character has 4 bytes at most: a longer text could be larger than that.
 */
export function shortened(result: string, omitted: string): string {
  return jsonata(`$length($string(${result})) <= 60000 ? ${result} : {'omitted': ${literal(omitted)}}`);
}

/** Repeats what was not started: after 2, 4, 8, 16 and 32 seconds, and then each minute for as long as the run is young. */
export function whileYoung(errors: readonly string[], maxEventAge: Duration): object {
  return {
    ErrorEquals: errors,
    IntervalSeconds: 2,
    BackoffRate: 2,
    MaxDelaySeconds: 60,
    MaxAttempts: 5 + Math.max(0, Math.ceil((maxEventAge.toSeconds() - 62) / 60)),
  };
}

/** Repeats what has failed. */
export function afterFailure(retryAttempts: number): object {
  return {
    ErrorEquals: ["States.ALL"],
    IntervalSeconds: 5,
    BackoffRate: 2,
    MaxDelaySeconds: 600,
    MaxAttempts: retryAttempts,
    JitterStrategy: "FULL",
  };
}

/** Gives the states that make a call under the lock. */
export function lockedCall(job: Construct, { table, permits }: TargetSettings, call: LockedCall): IChainable {
  const tableName = table.nameFor(job);
  const run = new CustomState(job, "Run", {
    stateJson: { ...call.task, Assign: { callResult: call.result } },
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
  // The next run finds the mark, and waits.
  if (stopping.length > 0) run.addCatch(failed, { ...failure, errors: [...stopping] });
  run
    .addCatch(unmarked, { assign: { callError: call.tooLarge }, errors: ["States.DataLimitExceeded"] })
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

/** For how long a mark is kept that no run reads any more. */
const markRetentionMs = Duration.days(7).toMilliseconds();

/** A write of the mark, beside the lease. */
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
