import { environmentNames } from "@leasehold/client/environment";
import { type MetricName, metricNames } from "@leasehold/client/metrics";
import { Duration, Stack } from "aws-cdk-lib";
import { type Metric, Stats } from "aws-cdk-lib/aws-cloudwatch";
import { LambdaFunction as FunctionRuleTarget } from "aws-cdk-lib/aws-events-targets";
import { type IRole, PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  EventInvokeConfig,
  type IFunction,
  type IVersion,
  type Function as LambdaFunction,
} from "aws-cdk-lib/aws-lambda";
import { SqsEventSource } from "aws-cdk-lib/aws-lambda-event-sources";
import type { IScheduleTarget } from "aws-cdk-lib/aws-scheduler";
import { ScheduleTargetBase, type ScheduleTargetBaseProps } from "aws-cdk-lib/aws-scheduler-targets";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import type { JobRunMetrics } from "../monitoring/job-alarms.ts";
import { aFunction, checkKind, checkWholeNumber } from "../prop-kinds.ts";
import { leaseMetric } from "../table/lease-table-base.ts";
import { checkRegion } from "../table/table-place.ts";
import { millisecondsText } from "../workflow/durations.ts";
import { roleInStackOf } from "../workflow/role-in-stack.ts";
import { callOfLocking, isDefinedHere } from "./function-calls.ts";
import { type IBoundTarget, type JobOverlap, JobTarget, type TargetSettings } from "./job-target.ts";
import { jobWorkflow } from "./workflow-target.ts";

/** Options of {@link SingletonJobTarget.lambda}. */
export interface FunctionTargetOptions {
  /**
   * How often Lambda repeats a run that failed, after 1 and 2 minutes; 0 to 2. A repetition fails while a killed run
   * still has its lease. Keep `lockAtMostFor` below a minute, or omit it, so that the lease has ended at the first
   * repetition.
   * @default 2
   */
  readonly retryAttempts?: number;
}

/** A waiting run holds its place under a separate key: the function itself acquires the job's key. */
const queueKeySuffix = "/queue";

/** The job that a function serves: a function's environment has room for one job. */
const jobOfFunction = new WeakMap<LambdaFunction, string>();

/** A function, or a version or an alias of one. */
type MaybeQualified = IFunction & { readonly lambda?: IFunction; readonly qualifier?: string };

/** A function that acquires the lock itself. */
export class FunctionTarget extends JobTarget {
  readonly timeout: Duration;
  readonly refusedProps = {};
  readonly waitingOverlaps: JobOverlap[] = ["queue"];
  readonly keptOverlaps: JobOverlap[] = ["queue"];
  override readonly refusedQueue = undefined;
  /** The invoked function, or an alias or version of it. */
  readonly #invoked: IFunction;
  /** The function that has the environment. */
  readonly #function: LambdaFunction;
  readonly #retryAttempts: number;

  constructor(fn: IFunction, options: FunctionTargetOptions) {
    super();
    this.#invoked = fn;
    this.#function = definitionOf(fn);
    this.#retryAttempts = options.retryAttempts ?? 2;
    checkWholeNumber("retryAttempts of the function", this.#retryAttempts, 0, 2);
    // Lambda's own default.
    this.timeout = this.#function.timeout ?? Duration.seconds(3);
  }

  bind(job: Construct, settings: TargetSettings): IBoundTarget {
    const fn = this.#function;
    const other = jobOfFunction.get(fn);
    if (other !== undefined) {
      throw new Error(
        `the function ${fn.node.path} already serves the job ${other}: define a function for each job`,
      );
    }
    jobOfFunction.set(fn, job.node.path);

    // The function's client sends to the function's own region, whatever region an ARN names.
    checkRegion(fn, settings.table);
    setEnvironment(fn, settings);
    settings.table.grants.useLeases(fn, { keys: [settings.key] });
    if (settings.queue) return this.#consuming(job, settings, settings.queue);
    if (settings.overlap === "queue") return this.#queued(job, settings);
    this.#configureRetries(job, settings);
    return this.#invokedDirectly(job, settings);
  }

  /** A run that finds the lock held fails, so that the queue delivers its message again. */
  #consuming(job: Construct, settings: TargetSettings, queue: IQueue): IBoundTarget {
    const { enabled } = settings;
    // One run works at a time, and Lambda accepts no number below 2.
    this.#invoked.addEventSource(new SqsEventSource(queue, { batchSize: 1, maxConcurrency: 2, enabled }));
    const bound = this.#invokedDirectly(job, settings);
    const { undelivered: _, ...runs } = bound.runs;
    // Lambda's errors also count the runs that found the lock held.
    const failed = { failed: metricsOf(job, settings)(metricNames.jobFailed) };
    return { ...bound, runs: settings.overlap === "queue" ? { ...runs, failed } : runs };
  }

  /**
   * Puts a workflow before the function. Runs wait for their turn there. Its lock lets one run at a time through.
   *
   * The function still takes the job's own lock, because a caller outside the queue may hold it. It throws then, and
   * the workflow tries again until that lock is free.
   */
  #queued(job: Construct, settings: TargetSettings): IBoundTarget {
    const bound = jobWorkflow(job, "Queue", settings, {
      key: `${settings.key}${queueKeySuffix}`,
      whenHeld: "wait",
      ...callOfLocking(job, this.#invoked, { ...settings, retryAttempts: this.#retryAttempts }),
    });
    const lost = metricsOf(job, settings)(metricNames.lost);
    return { ...bound, runs: { ...bound.runs, lost } };
  }

  #invokedDirectly(job: Construct, settings: TargetSettings): IBoundTarget {
    return {
      runs: functionRuns(job, this.#invoked, settings),
      arn: this.#invoked.functionArn,
      grantStart: (grantee) => this.#invoked.grantInvoke(grantee),
      scheduleTarget: (props) => new InvokeFunction(this.#invoked, props),
      ruleTarget: (props) => new FunctionRuleTarget(this.#invoked, props),
    };
  }

  /** Keeps the function's own settings for asynchronous invocations. */
  #configureRetries(job: Construct, { deadLetterQueue, maxEventAge }: TargetSettings): void {
    const fn = this.#invoked;
    const id = "EventInvokeConfig";
    if (fn.node.tryFindChild(id) !== undefined) return;
    // A version and an alias belong to a function, but have separate settings.
    const { lambda = fn, qualifier } = fn as MaybeQualified;
    const { role } = this.#function;
    const toSend = role && deadLetterQueue.grantSendMessages(roleInStackOf(job, role));
    // The configuration names the job's queue, so it belongs to the job's stack: the function's stack must not depend
    // on that.
    const config = new EventInvokeConfig(Stack.of(fn) === Stack.of(job) ? fn : job, id, {
      function: lambda,
      ...(qualifier === undefined ? {} : { qualifier }),
      retryAttempts: this.#retryAttempts,
      maxEventAge: Duration.seconds(
        Math.min(Math.max(maxEventAge.toSeconds(), retriesTakeSeconds), 6 * 3_600),
      ),
      onFailure: { bind: () => ({ destination: deadLetterQueue.queueArn }) },
    });
    toSend?.applyBefore(config);
  }
}

/**
 * The function whose environment a job can set; throws when there is none.
 *
 * A version keeps the environment that its function had when it was published. Of all versions, only the function's
 * `currentVersion` is published again with the job's settings.
 */
function definitionOf(fn: IFunction): LambdaFunction {
  if (isDefinedHere(fn)) return fn;
  const version = (fn as { readonly version?: string | IVersion }).version;
  const published = typeof version === "object" ? version : (fn as IVersion);
  const { lambda } = published as Partial<IVersion>;
  if (lambda !== undefined && isDefinedHere(lambda)) {
    if (lambda.node.tryFindChild("CurrentVersion") === published) return lambda;
    throw new Error(
      `${fn.node.path} is a version that keeps the environment it was published with, and the job's settings would not ` +
        `reach it: use currentVersion of ${lambda.node.path}, or SingletonJobTarget.lockedLambda, which sets nothing`,
    );
  }
  throw new Error(
    `${fn.node.path} is not defined in this app, so the job cannot set its environment: ` +
      "use SingletonJobTarget.lockedLambda, which locks any function from outside, or define the function here",
  );
}

/** A function behind a queue finds the lock free, or throws so that the workflow tries again. */
const whenHeld: Readonly<Record<JobOverlap, string>> = { skip: "skip", queue: "throw", replace: "replace" };

function setEnvironment(fn: LambdaFunction, settings: TargetSettings): void {
  const { lockAtMostFor, heartbeat } = settings;
  // The workflow's own lock has this cooldown: the runs that wait there cost nothing.
  const hasWorkflow = settings.overlap === "queue" && settings.queue === undefined;
  const lockAtLeastFor = hasWorkflow ? undefined : settings.lockAtLeastFor;
  const environment: Record<string, string | undefined> = {
    [environmentNames.tableName]: settings.table.nameFor(fn),
    [environmentNames.key]: settings.key,
    [environmentNames.job]: settings.jobName,
    [environmentNames.whenHeld]: whenHeld[settings.overlap],
    [environmentNames.once]: String(settings.once),
    [environmentNames.lockAtMostForMs]: lockAtMostFor && millisecondsText("lockAtMostFor", lockAtMostFor),
    [environmentNames.heartbeatMs]: heartbeat && millisecondsText("heartbeat", heartbeat),
    [environmentNames.lockAtLeastForMs]: lockAtLeastFor && millisecondsText("lockAtLeastFor", lockAtLeastFor),
  };
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined) fn.addEnvironment(name, value);
  }
}

function functionRuns(job: Construct, fn: IFunction, settings: TargetSettings): JobRunMetrics {
  const metric = metricsOf(job, settings);
  return {
    succeeded: metric(metricNames.jobSucceeded),
    // Lambda counts failures that the handler cannot report: timeouts, crashes, and modules that do not load.
    failed: { failed: fn.metricErrors() },
    undelivered: {
      toDestination: fn.metric("DestinationDeliveryFailures", { statistic: Stats.SUM }),
      toQueue: fn.metric("DeadLetterErrors", { statistic: Stats.SUM }),
    },
    skipped: metric(metricNames.jobSkipped),
    paused: metric(metricNames.jobPaused),
    // A replaced run loses its lease on purpose, and no metric distinguishes the two cases.
    ...(settings.overlap === "replace" ? {} : { lost: metric(metricNames.lost) }),
  };
}

/** The metrics of the job's runs. */
function metricsOf(job: Construct, { table, jobName }: TargetSettings): (name: MetricName) => Metric {
  return (name) => leaseMetric(name, { tableName: table.nameFor(job), job: jobName });
}

/** Lambda repeats a failed run after 1 minute and after 2 more. If a retry comes too late, its slot is done already. */
const retriesTakeSeconds = 300;

/**
 * A schedule's target: a function, without its versions.
 *
 * Like the library's LambdaInvoke, but that also permits every version and alias.
 *
 * ```ts
 * new Schedule(this, "Cleaning", { schedule: ScheduleExpression.rate(Duration.minutes(5)), target: new InvokeFunction(worker) });
 * ```
 */
export class InvokeFunction extends ScheduleTargetBase implements IScheduleTarget {
  constructor(fn: IFunction, props: ScheduleTargetBaseProps = {}) {
    super(props, checkKind("fn", fn, aFunction).functionArn);
  }

  protected addTargetActionToRole(role: IRole): void {
    role.addToPrincipalPolicy(
      new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [this.targetArn] }),
    );
  }
}
