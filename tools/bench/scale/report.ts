/** The tables that the simulation writes into pages. */
import { table } from "../costs/markdown.ts";
import { type Compared, compare, figures } from "./paper.ts";
import { type HandOver, handOver } from "./scenarios.ts";

/** The command that writes them, as the marks in the pages say. */
export const command = "npm run bench -- scale";

/** The table of docs/scale.md. */
export function scaleReport(compared: readonly Compared[]): string {
  const rows = compared.map(({ what, paper, simulated, because, within }) => [
    what,
    shown(paper),
    shown(simulated),
    within === undefined ? "at most" : `${100 * within} %`,
    because,
  ]);
  return table([["what", "on paper", "simulated", "may differ by", "the limit"], ...rows]);
}

/** Two figures that tell something, or three from a hundred on. */
function shown(value: number): string {
  return Number(value.toPrecision(value < 100 ? 2 : 3)).toLocaleString("en-US");
}

/** The table of docs/primitives/fair-lock.md. */
export async function handOverReport(): Promise<string> {
  const cells = ({ requests, idleMs }: HandOver): string[] => [shown(requests), shown(idleMs)];
  const rows: string[][] = [];
  for (const waiters of [2, 10, 50]) {
    const constant = await handOver(waiters, "constant");
    rows.push([String(waiters), ...cells(constant), ...cells(await handOver(waiters, "random"))]);
  }
  const head = ["holds of 1 s: requests", "idle ms, p50", "of 1 s on average, at random", "idle ms, p50"];
  return table([["waiters", ...head], ...rows]);
}

/** Simulates every figure. */
export async function compareAll(): Promise<Compared[]> {
  const compared: Compared[] = [];
  for (const figure of figures) compared.push(await compare(figure));
  return compared;
}
