import { Aws, Duration } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CustomState, type IChainable } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { jsonata } from "../workflow/asl.ts";
import type { TargetSettings } from "./job-target.ts";
import { afterFailure, fencedInput, input, lockedCall, shortened, whileYoung } from "./locked-call.ts";
import { checkSameRegion } from "./workflow-target.ts";

/**
 * Calls a function that acquires the job's own lock, and repeats the call while a caller outside the workflow holds
 * that lock.
 */
export function callOfLocking(
  job: Construct,
  fn: IFunction,
  settings: TargetSettings & { readonly retryAttempts: number },
): IChainable {
  checkSameRegion(job, "function", fn);
  // As long as a function can run, because its lease can last as long.
  const whileHeld = {
    ErrorEquals: ["LeaseUnavailableError"],
    IntervalSeconds: 15,
    BackoffRate: 1,
    MaxAttempts: 60,
  };
  return new CustomState(job, "Run", {
    stateJson: {
      ...call(fn, input, [whileHeld, ...retriesOf(longestRun(fn), settings)]),
      Output: shortened("function", answer),
    },
  });
}

/** Calls a function without its own locking code. */
export function callOfLocked(
  job: Construct,
  fn: IFunction,
  settings: TargetSettings & { readonly retryAttempts: number; readonly timeout: Duration | undefined },
): IChainable {
  checkSameRegion(job, "function", fn);
  const longest = longestRun(fn, settings.timeout);
  const overAfter = endOf(longest);
  return lockedCall(job, settings, {
    what: "function",
    task: { ...call(fn, fencedInput, retriesOf(longest, settings)), TimeoutSeconds: overAfter },
    result: answer,
    // A running function cannot be stopped.
    unclear: [...unclear, "States.Timeout"],
    endsWithin: overAfter,
    stopsWithin: overAfter,
  });
}

/** The permissions of a workflow that calls a function. */
export function mayInvoke(fn: IFunction): readonly PolicyStatement[] {
  return [new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [fn.functionArn] })];
}

/** Errors of Lambda that leave open whether the function was started. AWS recommends a retry after them. */
const unclear = [
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.ServiceException",
  "Lambda.AWSLambdaException",
  "Lambda.SdkClientException",
];

/** JSONata for what the function returns. */
const answer = "$states.result.Payload";

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
    whileYoung(["Lambda.TooManyRequestsException"], maxEventAge),
    // Without jitter, which could make the pause shorter than the function's run.
    { ErrorEquals: unclear, IntervalSeconds: endOf(longest), BackoffRate: 2, MaxAttempts: 3 },
    afterFailure(retryAttempts),
  ];
}

/** Lambda's own limit for a function. */
const longestTimeout = Duration.minutes(15);

/** How long a function can run. For a version, an alias or an imported function, only Lambda knows that. */
function longestRun(fn: IFunction, stated?: Duration): Duration {
  if (stated !== undefined) return stated;
  if (!isDefinedHere(fn)) return longestTimeout;
  // Lambda's own default.
  const { timeout = Duration.seconds(3) } = fn;
  return timeout.isUnresolved() ? longestTimeout : timeout;
}

/** Seconds after which a call has ended, whatever its answer: Lambda starts the function within a minute. */
function endOf(longest: Duration): number {
  return longest.toSeconds({ integral: false }) + 60;
}

/** Whether this app defines the function: then its settings can be read and changed. */
export function isDefinedHere(fn: IFunction): fn is LambdaFunction {
  // By its methods: a function may come from another copy of the library.
  return typeof (fn as Partial<LambdaFunction>).addEnvironment === "function";
}
