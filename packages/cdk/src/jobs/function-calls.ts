import { Aws, Duration } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CustomState } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { jsonata } from "../workflow/asl.ts";
import type { TargetSettings } from "./job-target.ts";
import { fencedInput, input, lockedCall, retriesOf, shortened } from "./locked-call.ts";
import { checkSameRegion, type JobWork } from "./workflow-target.ts";

type CallSettings = TargetSettings & {
  readonly retryAttempts: number;
  readonly timeout?: Duration | undefined;
};

/**
 * Calls a function that acquires the job's own lock, and repeats the call while a caller outside the workflow holds
 * that lock.
 */
export function callOfLocking(job: Construct, fn: IFunction, settings: CallSettings): JobWork {
  const { state, statements } = callOf(job, fn, input, settings);
  // As long as a function can run, because its lease can last as long.
  const whileHeld = {
    ErrorEquals: ["LeaseUnavailableError"],
    IntervalSeconds: 15,
    BackoffRate: 1,
    MaxAttempts: 60,
  };
  const Retry = [whileHeld, ...state.Retry];
  const stateJson = { ...state, Retry, Output: shortened("function", answer) };
  return { work: new CustomState(job, "Run", { stateJson }), statements };
}

/** Calls a function without its own locking code. */
export function callOfLocked(job: Construct, fn: IFunction, settings: CallSettings): JobWork {
  const { state, statements, overAfter } = callOf(job, fn, fencedInput, settings);
  const work = lockedCall(job, settings, {
    what: "function",
    task: { ...state, TimeoutSeconds: overAfter },
    result: answer,
    // A running function cannot be stopped.
    unclear: [...unclear, "States.Timeout"],
    endsWithin: overAfter,
    stopsWithin: overAfter,
  });
  return { work, statements };
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

/** The state that calls a function, its permissions, and the seconds after which a call has ended. */
function callOf(
  job: Construct,
  fn: IFunction,
  payload: string,
  { maxEventAge, retryAttempts, timeout }: CallSettings,
) {
  checkSameRegion(job, "function", fn);
  // Whatever its answer: Lambda starts the function within a minute.
  const overAfter = longestRun(fn, timeout).toSeconds({ integral: false }) + 60;
  // Without jitter, which could make the pause shorter than the function's run.
  const afterUnclear = { ErrorEquals: unclear, IntervalSeconds: overAfter, BackoffRate: 2, MaxAttempts: 3 };
  const noRoom = ["Lambda.TooManyRequestsException"];
  return {
    overAfter,
    statements: [new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [fn.functionArn] })],
    state: {
      Type: "Task",
      QueryLanguage: "JSONata",
      Resource: `arn:${Aws.PARTITION}:states:::lambda:invoke`,
      Arguments: { FunctionName: fn.functionArn, Payload: jsonata(payload) },
      Retry: retriesOf({ noRoom, afterUnclear, retryAttempts }, maxEventAge),
    },
  };
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

/** Whether this app defines the function: then its settings can be read and changed. */
export function isDefinedHere(fn: IFunction): fn is LambdaFunction {
  // By its methods: a function may come from another copy of the library.
  return typeof (fn as Partial<LambdaFunction>).addEnvironment === "function";
}
