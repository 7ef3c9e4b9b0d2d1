/**
 * The operations whose requests docs/requests.md promises, with and without contention: one file for each page. And the tables
 * of that page: what they send, and what a million of each cost.
 */
import { dollars, table } from "../costs/markdown.ts";
import { costOf } from "../costs/prices.ts";
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

const bySize = "by size";

/** Gives the generated part of docs/requests.md. Operations that send and cost the same share a row. */
export function requestsReport(): string {
  const pages = Map.groupBy(documentedOperations, ({ page }) => page);
  return [...pages]
    .map(([page, operations]) => {
      const rows = Map.groupBy(operations, (operation) => cells(operation).join(" | "));
      const link = page.replace(/^docs\//, "");
      return [
        `### [${operations[0]?.of}](${link})`,
        "",
        table([
          ["each of", "sends", "write", "read", "$"],
          ...[...rows.values()].map((alike) => [
            alike.map(({ name }) => name).join("; "),
            ...alike.slice(0, 1).flatMap(cells),
          ]),
        ]),
      ].join("\n");
    })
    .join("\n\n");
}

/** What follows the name. */
function cells({ requests, writeUnits, readUnits }: DocumentedOperation): string[] {
  if (writeUnits === undefined || readUnits === undefined) return [requests, bySize, bySize, bySize];
  const cost = costOf({ writeUnit: writeUnits, readUnit: readUnits });
  return [requests, String(writeUnits), String(readUnits), dollars(1e6 * cost)];
}
