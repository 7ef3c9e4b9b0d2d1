import { createRequire } from "node:module";
import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { together } from "@leasehold/client/together";
import { FairLock, fair } from "../../packages/client/src/entries/fair.ts";
import { acquireAll } from "../../packages/client/src/entries/group.ts";
import { Leader } from "../../packages/client/src/entries/leader.ts";
import { ReadWriteLock } from "../../packages/client/src/entries/read-write.ts";
import { Semaphore } from "../../packages/client/src/entries/semaphore.ts";
import { SingleFlight } from "../../packages/client/src/entries/single-flight.ts";
import { JobRuns, TaskSet } from "../../packages/jobs/src/index.ts";
import type { ReleaseBundle } from "../support/last-release.ts";

/** The packages as they are now. */
export const present = {
  LeaseClient,
  LeaseServiceError,
  LeaseAdmin,
  together,
  FairLock,
  fair,
  acquireAll,
  Leader,
  ReadWriteLock,
  Semaphore,
  SingleFlight,
  JobRuns,
  TaskSet,
} as const;

/** What a host has of the packages: those of now, an earlier release, or a copy with a mistake. */
export type Release = typeof present;

/** Worlds in which each host has an earlier release or the packages of now, and the host in its place another one. */
export function besideRelease({ file }: ReleaseBundle): { readonly releases: readonly [Release, Release] } {
  // What the release does not have yet is undefined.
  return { releases: [present, createRequire(file)(file) as Release] };
}
