import { Aws, Duration } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { CustomState } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import type { TargetSettings } from "./singleton-job-target.ts";

/** A waiting run holds its place under a key of its own: the job's key is the function's to take. */
const queueKeySuffix = "/queue";

/** The least that a queue's lease lasts; its keeper renews it. */
const shortestLease = Duration.minutes(3);

/**
 * Puts a workflow before a function, in which runs wait for their turn without polling.
 *
 * The workflow's lock lets one run at a time through to the function. The function still takes the job's own lock, for
 * somebody outside the queue may hold it: then it throws, and the workflow tries again until that lock is free.
 */
export function queueWorkflow(
  job: Construct,
  fn: LambdaFunction,
  settings: TargetSettings & { readonly retryAttempts: number },
): LeasedWorkflow {
  const { table, key, once, lockAtLeastFor, maxEventAge, wakeup, keeper } = settings;
  const invoke = new CustomState(job, "Run", {
    stateJson: {
      Type: "Task",
      QueryLanguage: "JSONata",
      Resource: `arn:${Aws.PARTITION}:states:::lambda:invoke`,
      Arguments: { FunctionName: fn.functionArn, Payload: "{% $states.input %}" },
      Output: "{% $states.result.Payload %}",
      Retry: [
        // As long as any function can run, and so as any function's lease lasts.
        { ErrorEquals: ["LeaseUnavailableError"], IntervalSeconds: 15, BackoffRate: 1, MaxAttempts: 60 },
        {
          ErrorEquals: ["States.ALL"],
          IntervalSeconds: 5,
          BackoffRate: 2,
          MaxAttempts: settings.retryAttempts,
          JitterStrategy: "FULL",
        },
      ],
    },
  });
  const workflow = new LeasedWorkflow(job, "Queue", {
    table,
    key: `${key}${queueKeySuffix}`,
    work: invoke,
    whenHeld: "wait",
    // A run that is too old to be started is too old to wait.
    waitFor: maxEventAge,
    once,
    leaseDuration:
      lockAtLeastFor && lockAtLeastFor.toMilliseconds() > shortestLease.toMilliseconds()
        ? lockAtLeastFor
        : shortestLease,
    ...(lockAtLeastFor ? { lockAtLeastFor } : {}),
    ...(wakeup ? { wakeup } : {}),
    ...(keeper ? { heartbeat: keeper } : {}),
  });
  workflow.stateMachine.addToRolePolicy(
    new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [fn.functionArn] }),
  );
  return workflow;
}
