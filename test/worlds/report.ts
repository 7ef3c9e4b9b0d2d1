import { styleText } from "node:util";
import type { Outcome } from "./simulation.ts";

const linesShown = 60;

/** Tells how a violation came about, for a reader: the last lines of the timeline, the violation and the replay. */
export function tellViolation(
  { simulation, seed, violation, timeline, virtualMs }: Outcome,
  flags = "",
): string {
  const shown = timeline.slice(-linesShown);
  const widest = Math.max(...shown.map((line) => line.who.length));
  const lines = shown.map(({ at, who, text }) => {
    const line = `${(at / 1000).toFixed(3).padStart(9)} s  ${who.padEnd(widest)}  ${text}`;
    return who === "MONITOR" ? styleText("red", line, { stream: process.stdout }) : line;
  });
  const left = timeline.length - shown.length;
  return [
    ...(left > 0 ? [`      ... ${left} earlier lines`] : []),
    ...lines,
    "",
    `seed ${seed} after ${(virtualMs / 1000).toFixed(3)} s of virtual time: ${violation ?? "nothing went wrong"}`,
    `replay: npm run evidence -- worlds --primitive ${simulation} --seed ${seed}${flags}`,
  ].join("\n");
}
