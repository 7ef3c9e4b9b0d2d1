import { spawn } from "node:child_process";
import { once } from "node:events";

/** As many processes as work side by side most of the time, and how many starts one after the other. */
const sideBySide = 2;
const startsInTurn = 4;

/** The work of a process of this probe: to start, and some arithmetic, as a function's first invocation has. */
const work = "let sum = 0; for (let i = 0; i < 2e7; i++) sum += i % 7;";

/** What the probe takes on the machine for which the plan is written: two processors with nothing else to do. */
const expectedMs = 400;

/** Up to here the plan has room as it is, and beyond it half of what the machine is slower is enough. */
const quickEnough = 1.5;
const share = 0.5;
/** A plan that is stretched further than this takes longer than anybody looks on. */
const mostStretch = 5;

/** Measures how long processes take to start and to work here, in about half a second where nothing else runs. */
export async function measureMachine(signal: AbortSignal): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: sideBySide }, async () => {
      for (let index = 0; index < startsInTurn; index++) {
        await once(spawn(process.execPath, ["-e", work], { stdio: "ignore", signal }), "close");
      }
    }),
  );
  return performance.now() - startedAt;
}

/** By how much the plan is stretched on a machine that took so long over the probe: halves are fine enough. */
export function stretchFor(measuredMs: number): number {
  const slowness = measuredMs / expectedMs;
  if (slowness <= quickEnough) return 1;
  return Math.min(mostStretch, Math.ceil((1 + share * (slowness - 1)) * 2) / 2);
}
