import { Aws, Duration, Stack, Token } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction, Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CustomState, Fail, type IChainable, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import type { TargetSettings } from "./job-target.ts";

/** The least that the workflow's lease lasts where the user says nothing; its keeper renews it. */
const shortestLease = Duration.minutes(3);

/** What a function's workflow is made of, besides the job's settings. */
export interface FunctionWorkflowProps {
  readonly fn: IFunction;
  readonly key: string;
  readonly whenHeld: WhenHeld;
  readonly leaseDuration?: Duration | undefined;
  /** The states that call the function. */
  readonly work: IChainable;
}

/** Puts a function behind a workflow, which holds a lease while it calls the function; its waiting runs do not poll. */
export function functionWorkflow(
  job: Construct,
  id: string,
  settings: TargetSettings,
  props: FunctionWorkflowProps,
): LeasedWorkflow {
  const { table, once, lockAtLeastFor, maxEventAge, wakeup, keeper } = settings;
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
    ...(lockAtLeastFor ? { lockAtLeastFor } : {}),
    ...(wakeup ? { wakeup } : {}),
    ...(keeper ? { heartbeat: keeper } : {}),
    ...settings.observability,
  });
  workflow.stateMachine.addToRolePolicy(
    new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [fn.functionArn] }),
  );
  return workflow;
}

/** Calls a function that takes the job's own lock, and comes back while somebody outside the workflow holds that. */
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
    stateJson: call(fn, "$states.input", [whileHeld, ...retriesOf(longestRun(fn), settings)]),
  });
}

/**
 * Calls a function that knows nothing of the lock.
 *
 * Where Lambda's answer leaves open whether the function runs, no second call is made, and the lock is not let go,
 * before the first call must have ended.
 */
export function callOfLocked(
  job: Construct,
  fn: IFunction,
  settings: TargetSettings & { readonly retryAttempts: number; readonly timeout: Duration | undefined },
): IChainable {
  const overAfter = endOf(longestRun(fn, settings.timeout));
  // A fencing token lets the function protect what it writes: not even a stopped execution stops it.
  const payload =
    "$type($states.input) = 'object' ? " +
    "$merge([$states.input, {'fencingToken': $lease.fencingToken}]) : $states.input";
  const run = new CustomState(job, "Run", {
    stateJson: {
      ...call(fn, payload, retriesOf(longestRun(fn, settings.timeout), settings)),
      TimeoutSeconds: overAfter,
    },
  });
  const caught = { assign: { functionError: "{% $states.errorOutput %}" } };
  const failed = Fail.jsonata(job, "RunFailed", {
    error: "{% $functionError.Error %}",
    cause: "{% $exists($functionError.Cause) ? $functionError.Cause : 'no cause was given' %}",
  });
  const letItEnd = Wait.jsonata(job, "LetFunctionEnd", {
    time: WaitTime.duration(Duration.seconds(overAfter)),
  });
  const tooLarge = Fail.jsonata(job, "AnswerTooLarge", {
    error: "FunctionAnswerTooLargeError",
    cause:
      "what the function was sent, or what it returned, is more than the 256 KiB that Step Functions takes: " +
      "keep it elsewhere, and return where it is",
  });
  return run
    .addCatch(letItEnd.next(failed), { ...caught, errors: [...unclear, "States.Timeout"] })
    .addCatch(tooLarge, { errors: ["States.DataLimitExceeded"] });
}

/** Answers of Lambda's that leave open whether the function was started; AWS recommends to try again after them. */
const unclear = [
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.ServiceException",
  "Lambda.AWSLambdaException",
  "Lambda.SdkClientException",
];

function call(fn: IFunction, payload: string, retry: readonly object[]): Record<string, unknown> {
  // A character has 4 bytes at most: a longer text could be more than an execution may give.
  const kept = "$length($string($states.result.Payload)) <= 60000";
  return {
    Type: "Task",
    QueryLanguage: "JSONata",
    Resource: `arn:${Aws.PARTITION}:states:::lambda:invoke`,
    Arguments: { FunctionName: fn.functionArn, Payload: `{% ${payload} %}` },
    Output: `{% ${kept} ? $states.result.Payload : {'omitted': 'what the function returned is too long to be kept'} %}`,
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

/** For how long a function can run. What a version, an alias or an imported function has is known to Lambda alone. */
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
  // By what it can do: a function may come from another copy of the library.
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
  // What only a deployment knows is refused by the workflow.
  return a !== undefined && !a.isUnresolved() && a.toMilliseconds() > b.toMilliseconds() ? a : b;
}
