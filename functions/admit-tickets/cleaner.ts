import type { LeaseClient } from "@leasehold/client";
import { LeaseAdmin, type ListCursor } from "@leasehold/client/admin";
import { JobRuns } from "@leasehold/jobs";
import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { once } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { runAt } from "../support/unscheduled-runs.ts";
import { hasTimeLeft, leaseForInvocation } from "../support/working-time.ts";
import { agentKeyPrefix, cleaningKey } from "./schema.ts";

/** What the cleaner works with. */
export interface Cleaning {
  readonly leases: LeaseClient;
  /** Milliseconds until the invocation ends. */
  readonly remainingMs: () => number;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
}

/** What the cleaner did. */
export interface CleaningReport {
  /** Agents with a ticket in service. */
  readonly agents: number;
  /** Tickets whose service was ended because they were silent. */
  readonly removed: number;
  /** Whether it came to the end of the table; if not, the next cleaning goes on from there. */
  readonly isComplete: boolean;
}

/** What a run leaves for the next one: the place where it stopped, if it was not at the end. */
interface Progress {
  readonly after?: ListCursor;
}

const deskLeaseMs = 10_000;
const keepForMs = 86_400_000;
/** A run that died has left nothing: then the run before it counts. */
const runsLookedAt = 10;

/**
 * Frees the agents whose tickets are silent. Where other tickets wait, the next in line takes over, mostly before that.
 *
 * Cleaning means: take the agent's lease over, and release it. What else a silent ticket leaves ends by itself.
 *
 * It reads the whole lease table, page by page of a megabyte each. That can take longer than one invocation has, so
 * each run goes on where the last one stopped. The run history remembers that place.
 */
export async function cleanDesks({ leases, remainingMs, now = Date.now }: Cleaning): Promise<CleaningReport> {
  const leaseDurationMs = leaseForInvocation(remainingMs());
  const runs = new JobRuns(leases, cleaningKey, { heartbeat: false, keepForMs, leaseDurationMs });
  const after = await whereItStopped(runs);
  return await runAt(runs, now(), async ({ progress }) => {
    let [agents, removed] = [0, 0];
    const pages = new LeaseAdmin(leases).listPages({
      prefix: agentKeyPrefix,
      ...(after === undefined ? {} : { after }),
    });
    const report = (isComplete: boolean): CleaningReport => ({ agents, removed, isComplete });
    const leave = (left: Progress): void => progress(left);
    for await (const { leases: services, next } of pages) {
      for (const { key, sortKey, expiresAt } of services) {
        agents += 1;
        if (expiresAt <= now() && (await isFreed(leases, key))) removed += 1;
        leave({ after: { pk: key, sk: sortKey } });
        if (!hasTimeLeft(remainingMs())) return report(false);
      }
      leave(next === undefined ? {} : { after: next });
      if (next !== undefined && !hasTimeLeft(remainingMs())) return report(false);
    }
    return report(true);
  });
}

async function isFreed(leases: LeaseClient, key: string): Promise<boolean> {
  const lease = await leases.tryAcquire(key, { leaseDurationMs: deskLeaseMs });
  await lease?.release();
  return lease !== undefined;
}

async function whereItStopped(runs: JobRuns): Promise<ListCursor | undefined> {
  for await (const { progress } of runs.runs({ descending: true, limit: runsLookedAt })) {
    if (progress !== undefined) return (progress as Progress).after;
  }
  return undefined;
}

const leases = once(() => leaseClient(dynamodb()));

/** Frees agents. Cleaning twice does no harm. When the cleaner dies in between, a later run cleans the rest. */
export const handler: Answering<CleaningReport> = answering((_event, context) =>
  cleanDesks({ leases: leases(), remainingMs: () => context.getRemainingTimeInMillis() }),
);
