import { endCalls, markCalls, takeOverCalls } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { Aws, Duration, Stack, Token } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CustomState, Fail, type IChainable, Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { jsonata, refused, call as sdkCall } from "../workflow/asl.ts";
import { placed } from "../workflow/lease-requests.ts";
import { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import type { BoundTarget, TargetSettings } from "./job-target.ts";
import { runsOf } from "./workflow-target.ts";

/** The least that the workflow's lease lasts where the user says nothing; its keeper renews it. */
const shortestLease = Duration.minutes(3);

/** The parts of a function's workflow, besides the job's settings. */
export interface FunctionWorkflowProps {
  readonly fn: IFunction;
  readonly key: string;
  readonly whenHeld: WhenHeld;
  readonly leaseDuration?: Duration | undefined;
  /** The states that call the function. */
  readonly work: IChainable;
}

/** Makes a target of a workflow that holds a lease while it calls the function; its waiting runs do not poll. */
export function functionWorkflow(
  job: Construct,
  id: string,
  settings: TargetSettings,
  props: FunctionWorkflowProps,
): BoundTarget {
  const { table, once, permits, lockAtLeastFor, maxEventAge, wakeup, keeper } = settings;
  const { fn, key, whenHeld, work, leaseDuration = longer(lockAtLeastFor, shortestLease) } = props;
  checkRegion(job, fn);
  const workflow = new LeasedWorkflow(job, id, {
    table,
    key,
    work,
    whenHeld,
    once,
    leaseDuration,
    // A run that is too old to be started is too old to wait.
    ...(whenHeld === "skip" ? {} : { waitFor: maxEventAge }),
    ...(permits === undefined ? {} : { permits }),
    ...(lockAtLeastFor ? { lockAtLeastFor } : {}),
    ...(wakeup ? { wakeup } : {}),
    ...(keeper ? { heartbeat: keeper } : {}),
    ...settings.observability,
  });
  workflow.stateMachine.addToRolePolicy(
    new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [fn.functionArn] }),
  );
  return { ...runsOf(workflow), ...(keeper ? {} : { keeper: workflow.heartbeat }) };
}

/**
 * Calls a function that takes the job's own lock, and repeats the call while a caller outside the workflow holds that
 * lock.
 */
export function callOfLocking(
  job: Construct,
  fn: IFunction,
  settings: TargetSettings & { readonly retryAttempts: number },
): IChainable {
  // As long as any function can run, and so as any function's lease lasts.
  const whileHeld = {
    ErrorEquals: ["LeaseUnavailableError"],
    IntervalSeconds: 15,
    BackoffRate: 1,
    MaxAttempts: 60,
  };
  return new CustomState(job, "Run", {
    stateJson: {
      ...call(fn, input, [whileHeld, ...retriesOf(longestRun(fn), settings)]),
      Output: result,
    },
  });
}

/**
 * Calls a function that knows nothing of the lock.
 *
 *     MarkCall ─▶ Run ─▶ UnmarkCall ─▶ Returned
 *        │ refused  └─ it fails ─▶ LetFunctionEnd, if it may still run ─▶ UnmarkFailed ─▶ RunFailed
 *        └─▶ LetEarlierEnd ─▶ TakeOverCall ─▶ Run
 *
 * No call begins while another may still run. Where Lambda's answer leaves open whether the function runs, the first call
 * must have ended before the next one is made, or the lock is let go. And a run that was stopped with a call under way
 * leaves its mark: the next run waits until that call must have ended. Runs with permits leave no marks: their calls overlap
 * anyway.
 */
export function callOfLocked(
  job: Construct,
  fn: IFunction,
  settings: TargetSettings & { readonly retryAttempts: number; readonly timeout: Duration | undefined },
): IChainable {
  const longest = longestRun(fn, settings.timeout);
  const overAfter = endOf(longest);
  const time = WaitTime.duration(Duration.seconds(overAfter));
  const tableName = settings.table.nameFor(job);
  // A fencing token lets the function protect its writes even after the lease was lost.
  const payload =
    `$type(${input}) = 'object' ? ` + `$merge([${input}, {'fencingToken': $lease.fencingToken}]) : ${input}`;
  const run = new CustomState(job, "Run", {
    stateJson: {
      ...call(fn, payload, retriesOf(longest, settings)),
      TimeoutSeconds: overAfter,
      Assign: { functionResult: result },
    },
  });
  const mark = (id: string, request: Mark): CustomState =>
    new CustomState(job, id, { stateJson: markState(tableName, request) });

  const isMarked = settings.permits === undefined;
  const returned = Pass.jsonata(job, "Returned", { outputs: jsonata("$functionResult") });
  if (isMarked) run.next(mark("UnmarkCall", endCalls).addCatch(returned)).next(returned);
  else run.next(returned);

  const failed = Fail.jsonata(job, "RunFailed", {
    error: jsonata("$functionError.Error"),
    cause: jsonata("$exists($functionError.Cause) ? $functionError.Cause : 'no cause was given'"),
  });
  const unmark = isMarked ? mark("UnmarkFailed", endCalls).addCatch(failed) : undefined;
  unmark?.next(failed);
  const after = unmark ?? failed;
  const failure = { assign: { functionError: jsonata("$states.errorOutput") } };
  run
    .addCatch(Wait.jsonata(job, "LetFunctionEnd", { time }).next(after), {
      ...failure,
      errors: [...unclear, "States.Timeout"],
    })
    .addCatch(after, { assign: { functionError: tooLarge }, errors: ["States.DataLimitExceeded"] })
    .addCatch(after, failure);
  if (!isMarked) return run;

  const overtaken = Fail.jsonata(job, "Overtaken", {
    error: "LeaseLostError",
    cause: "a later run calls the function",
  });
  const takeOver = mark("TakeOverCall", takeOverCalls).addCatch(overtaken, { errors: [refused] });
  const waiting = Wait.jsonata(job, "LetEarlierEnd", { time }).next(takeOver);
  takeOver.next(run);
  return mark("MarkCall", markCalls)
    .addCatch(waiting, { errors: [refused] })
    .next(run);
}

const tooLarge = {
  Error: "FunctionAnswerTooLargeError",
  Cause:
    "what the function was sent, or what it returned, is more than the 256 KiB that Step Functions takes: " +
    "keep it elsewhere, and return where it is",
};

type Mark = typeof endCalls;

/** For how long a mark is kept that no run reads any more. */
const markRetentionMs = Duration.days(7).toMilliseconds();

/** A write of the mark, beside the lease. */
function markState(tableName: string, mark: Mark): Record<string, unknown> {
  const sample = mark({ key: "key", fencingToken: 1, now: 1, retentionMs: 1 });
  const fence = "$lease.fencingToken";
  const { update, condition, ...write } = placed(sample, {
    ":ifFence": fence,
    ":ttl": `$ceil(($millis() + ${markRetentionMs}) / 1000)`,
    ...(attributeNames.fence in sample.set ? { ":fence": fence } : {}),
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

/** Answers of Lambda's that leave open whether the function was started; AWS recommends to try again after them. */
const unclear = [
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.ServiceException",
  "Lambda.AWSLambdaException",
  "Lambda.SdkClientException",
];

/** The workflow's input, unchanged on its way. */
const input = "$states.context.Execution.Input";

/**
 * The function's result. A character has 4 bytes at most: a longer text could be larger than an execution's result
 * may be.
 */
const result: string = jsonata(
  "$length($string($states.result.Payload)) <= 60000 ? $states.result.Payload " +
    ": {'omitted': 'what the function returned is too long to be kept'}",
);

function call(fn: IFunction, payload: string, retry: readonly object[]): Record<string, unknown> {
  return {
    Type: "Task",
    QueryLanguage: "JSONata",
    Resource: `arn:${Aws.PARTITION}:states:::lambda:invoke`,
    Arguments: { FunctionName: fn.functionArn, Payload: jsonata(payload) },
    Retry: retry,
  };
}

function retriesOf(
  longest: Duration,
  { maxEventAge, retryAttempts }: Pick<TargetSettings, "maxEventAge"> & { readonly retryAttempts: number },
): readonly object[] {
  return [
    // The function was not started. 2, 4, 8, 16 and 32 seconds, and then each minute for as long as the run is young.
    {
      ErrorEquals: ["Lambda.TooManyRequestsException"],
      IntervalSeconds: 2,
      BackoffRate: 2,
      MaxDelaySeconds: 60,
      MaxAttempts: 5 + Math.max(0, Math.ceil((maxEventAge.toSeconds() - 62) / 60)),
    },
    // Without jitter, which could make the pause shorter than the function's run.
    { ErrorEquals: unclear, IntervalSeconds: endOf(longest), BackoffRate: 2, MaxAttempts: 3 },
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

/** Lambda's own limit for a function. */
const longestTimeout = Duration.minutes(15);

/** For how long a function can run. Only Lambda knows that of a version, an alias or an imported function. */
function longestRun(fn: IFunction, stated?: Duration): Duration {
  if (stated !== undefined) return stated;
  if (!isDefinedHere(fn)) return longestTimeout;
  // Lambda's own default.
  const { timeout = Duration.seconds(3) } = fn;
  return timeout.isUnresolved() ? longestTimeout : timeout;
}

/** Seconds after which a call has ended, whatever became of its answer: the function is started within a minute. */
function endOf(longest: Duration): number {
  return longest.toSeconds({ integral: false }) + 60;
}

/** Tells a function that this app defines, whose settings can be read and changed, from any other. */
export function isDefinedHere(fn: IFunction): fn is LambdaFunction {
  // By its methods: a function may come from another copy of the library.
  return typeof (fn as Partial<LambdaFunction>).addEnvironment === "function";
}

function checkRegion(job: Construct, fn: IFunction): void {
  const [here, there] = [Stack.of(job).region, fn.env.region];
  if (Token.isUnresolved(here) || Token.isUnresolved(there) || here === there) return;
  throw new Error(
    `the function ${fn.node.path} is in ${there}, and Step Functions calls functions of its own region (${here}) only: ` +
      `define the job in a stack of ${there}`,
  );
}

function longer(a: Duration | undefined, b: Duration): Duration {
  // The workflow itself checks values that are known at deployment only.
  return a !== undefined && !a.isUnresolved() && a.toMilliseconds() > b.toMilliseconds() ? a : b;
}
