/** The tables of docs/requests.md: what the counted operations send, and what a million of each cost. */
import { documentedOperations } from "../operations/index.ts";
import type { DocumentedOperation } from "../operations/promised.ts";
import { dollars, table } from "./markdown.ts";
import { costOf } from "./prices.ts";

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
