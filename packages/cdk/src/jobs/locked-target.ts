import { Duration } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { numberText } from "../prop-kinds.ts";
import { aYear, checkedMs } from "../workflow/durations.ts";
import type { WhenHeld } from "../workflow/workflow-terms.ts";
import { type IBoundTarget, type JobOverlap, JobTarget, type TargetSettings } from "./job-target.ts";
import { type JobWork, jobWorkflow } from "./job-workflow.ts";

const whenHeld: Readonly<Record<JobOverlap, WhenHeld>> = { skip: "skip", queue: "wait", replace: "replace" };

/** Work without its own locking code, behind a workflow that holds the lock. */
export abstract class LockedTarget extends JobTarget {
  /** The keeper renews the lease while a run takes. */
  readonly timeout = undefined;
  readonly refusedProps = {
    heartbeat:
      "for work that is locked from outside: leave it out, for a keeper renews the lease every third of lockAtMostFor",
  };
  override readonly takesPermits = true;
  readonly waitingOverlaps: JobOverlap[] = ["queue", "replace"];
  readonly keptOverlaps: JobOverlap[] = ["skip", "queue", "replace"];

  /** Defines the states that work under the lease. */
  protected abstract work(job: Construct, settings: TargetSettings): JobWork;

  bind(job: Construct, settings: TargetSettings): IBoundTarget {
    const { lockAtMostFor } = settings;
    if (lockAtMostFor) checkedMs("lockAtMostFor", lockAtMostFor, Duration.seconds(3), aYear);
    const bound = jobWorkflow(job, "Workflow", settings, {
      key: settings.key,
      whenHeld: whenHeld[settings.overlap],
      leaseDuration: lockAtMostFor,
      ...this.work(job, settings),
    });
    if (settings.overlap !== "replace") return bound;
    // A replaced run is stopped on purpose.
    const { aborted: _, ...failed } = bound.runs.failed;
    return { ...bound, runs: { ...bound.runs, failed } };
  }
}

/** Returns how often work is repeated after its own error. */
export function checkedRetryAttempts(kind: string, retryAttempts = 2): number {
  if (Number.isInteger(retryAttempts) && retryAttempts >= 0 && retryAttempts <= 20) return retryAttempts;
  throw new Error(
    `retryAttempts of the ${kind} is ${numberText(retryAttempts)}: set a whole number from 0 to 20`,
  );
}
