/** The operations whose requests docs/requests.md promises, with and without contention: one file for each page. */
import { fair } from "./fair.ts";
import { groups } from "./group.ts";
import { jobRuns } from "./jobs.ts";
import { leader } from "./leader.ts";
import { lock } from "./lock.ts";
import { operators } from "./operators.ts";
import type { DocumentedOperation, Promised } from "./promised.ts";
import { readWrite } from "./read-write.ts";
import { semaphore } from "./semaphore.ts";
import { singleFlight } from "./single-flight.ts";
import { tasks } from "./tasks.ts";

const pages: readonly (readonly [of: string, page: string, operations: readonly Promised[]])[] = [
  ["Lock", "docs/DESIGN.md", lock],
  ["Group", "docs/primitives/group.md", groups],
  ["Fair lock", "docs/primitives/fair-lock.md", fair],
  ["Semaphore", "docs/primitives/semaphore.md", semaphore],
  ["Read-write lock", "docs/primitives/read-write.md", readWrite],
  ["Leader", "docs/primitives/leader.md", leader],
  ["Single flight", "docs/primitives/single-flight.md", singleFlight],
  ["Job runs", "docs/primitives/job-runs.md", jobRuns],
  ["Tasks", "docs/primitives/tasks.md", tasks],
  ["Operators", "docs/decisions/operators.md", operators],
];

/** The operations whose requests are promised, in the order of the documentation. */
export const documentedOperations: readonly DocumentedOperation[] = pages.flatMap(([of, page, operations]) =>
  operations.map((operation) => ({ of, page, ...operation })),
);
