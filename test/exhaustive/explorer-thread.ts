/** A thread that explores: for each task that it is sent, what came of it. */
import { parentPort } from "node:worker_threads";
import { type Exploration, explore, find } from "./explore.ts";
import { scenarios } from "./scenarios/index.ts";

/** A scenario to explore, or one of its mistakes to find. */
export interface Task {
  readonly scenario: string;
  /** What the mistake is. @default - none is planted */
  readonly mistake?: string | undefined;
}

parentPort?.on("message", async ({ scenario: name, mistake = "" }: Task) => {
  const scenario = scenarios.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario has the name ${name}`);
  const [plant] = scenario.mistakes[mistake] ?? [];
  const result: Exploration = plant === undefined ? await explore(scenario) : await find(scenario, plant);
  parentPort?.postMessage(result);
});
