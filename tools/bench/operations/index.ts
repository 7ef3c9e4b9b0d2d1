/**
 * The operations whose requests docs/requests.md promises, with and without contention: one file for each page. And the lists
 * of that page: what they send, and what a million of each cost.
 */
import { dollars } from "../costs/markdown.ts";
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

/** Gives the generated part of docs/requests.md. Operations that send and cost the same share a line. */
export function requestsReport(): string {
  const pages = Map.groupBy(documentedOperations, ({ page }) => page);
  return [...pages]
    .map(([page, operations]) => {
      const lines = Map.groupBy(operations, priceOf);
      const link = page.replace(/^docs\//, "");
      return [
        `### [${operations[0]?.of}](${link})`,
        "",
        ...[...lines].map(([price, alike]) => `- ${price}: ${alike.map(({ name }) => name).join("; ")}`),
      ].join("\n");
    })
    .join("\n\n");
}

/** What an operation sends, its units, and dollars for a million of it: `**1 UpdateItem** (1 write, $0.63)`. */
function priceOf({ requests, writeUnits, readUnits }: DocumentedOperation): string {
  const sends = `**${requests}**`;
  if (writeUnits === undefined || readUnits === undefined) return `${sends} (by size)`;
  if (writeUnits === 0 && readUnits === 0) return sends;
  const cost = dollars(1e6 * costOf({ writeUnit: writeUnits, readUnit: readUnits }));
  const units = [
    ...(writeUnits > 0 ? [`${writeUnits} write`] : []),
    ...(readUnits > 0 ? [`${readUnits} read`] : []),
  ];
  return `${sends} (${[...units, `$${cost}`].join(", ")})`;
}
