import { Duration, type IResource, Stack } from "aws-cdk-lib";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IChainable } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { acceptResource } from "../accepted-findings.ts";
import { areSame } from "../table/table-place.ts";
import { LeasedWorkflow } from "../workflow/leased-workflow.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import type { IBoundTarget, TargetSettings } from "./job-target.ts";
import { runsOf } from "./workflow-target.ts";

/** The shortest default of the workflow's lease; its keeper renews it. */
const shortestLease = Duration.minutes(3);

/** The states of a job's workflow, and their permissions. */
export interface JobWork {
  /** The states that call the function, or run the task. */
  readonly work: IChainable;
  /** The permissions of these states. */
  readonly statements: readonly PolicyStatement[];
}

/** The parts of a job's workflow, besides the job's settings. */
export interface JobWorkflowProps extends JobWork {
  readonly key: string;
  readonly whenHeld: WhenHeld;
  readonly leaseDuration?: Duration | undefined;
}

/** Creates the target of a workflow that holds a lease while it works. Its waiting runs do not poll. */
export function jobWorkflow(
  job: Construct,
  id: string,
  settings: TargetSettings,
  props: JobWorkflowProps,
): IBoundTarget {
  const { table, once, permits, lockAtLeastFor, maxEventAge, wakeup, keeper } = settings;
  const { key, whenHeld, work, statements, leaseDuration = longer(lockAtLeastFor, shortestLease) } = props;
  const workflow = new LeasedWorkflow(job, id, {
    table,
    key,
    work,
    whenHeld,
    once,
    leaseDuration,
    // A run that is too old to start is too old to wait.
    ...(whenHeld === "skip" ? {} : { waitFor: maxEventAge }),
    ...(permits === undefined ? {} : { permits }),
    ...(lockAtLeastFor ? { lockAtLeastFor } : {}),
    ...(wakeup ? { wakeup } : {}),
    ...(keeper ? { heartbeat: keeper } : {}),
    ...settings.observability,
  });
  const { stateMachine } = workflow;
  for (const statement of statements) {
    stateMachine.addToRolePolicy(statement);
    for (const arn of statement.resources) {
      acceptResource(stateMachine, arn, "a task, a job or an execution gets its name when the run starts it");
    }
  }
  return { ...runsOf(workflow), ...(keeper ? {} : { keeper: workflow.heartbeat }) };
}

/** Refuses a resource of another region, which Step Functions does not reach. */
export function checkSameRegion(job: Construct, kind: string, resource: IResource): void {
  const [here, there] = [Stack.of(job).region, resource.env.region];
  if (areSame(here, there) !== false) return;
  throw new Error(
    `the ${kind} ${resource.node.path} is in ${there}, and Step Functions calls services of its own region (${here}) only: ` +
      `define the job in a stack of ${there}`,
  );
}

function longer(a: Duration | undefined, b: Duration): Duration {
  // The workflow itself checks values that are known at deployment only.
  return a !== undefined && !a.isUnresolved() && a.toMilliseconds() > b.toMilliseconds() ? a : b;
}
