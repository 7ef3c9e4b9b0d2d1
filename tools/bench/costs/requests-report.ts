/** The tables of docs/requests.md: what each counted operation sends, and what a million of it cost. */
import { documentedOperations } from "../operations/index.ts";
import type { DocumentedOperation } from "../operations/promised.ts";
import { dollars, table } from "./markdown.ts";
import { costOf } from "./prices.ts";

const bySize = "by size";

/** Gives the generated part of docs/requests.md. */
export function requestsReport(): string {
  const pages = new Map(documentedOperations.map(({ page, of }) => [page, of]));
  return [...pages]
    .map(([page, of]) => {
      const head = ["operation", "requests", "write units", "read units", "$ a million"];
      const rows = documentedOperations.filter((operation) => operation.page === page);
      const link = page.replace(/^docs\//, "");
      return [`### [${of}](${link})`, "", table([head, ...rows.map(cells)])].join("\n");
    })
    .join("\n\n");
}

function cells({ name, requests, writeUnits, readUnits }: DocumentedOperation): string[] {
  if (writeUnits === undefined || readUnits === undefined) return [name, requests, bySize, bySize, bySize];
  const cost = costOf({ writeUnit: writeUnits, readUnit: readUnits });
  return [name, requests, String(writeUnits), String(readUnits), dollars(1e6 * cost)];
}
