import { table } from "../costs/markdown.ts";
import type { Compared } from "./paper.ts";

/** The generated table of docs/scale.md. */
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
