/** A thread that explores: for each task that it is sent, what came of it. */
import { parentPort } from "node:worker_threads";
import { type Exploration, explore, find } from "./explore.ts";
import { scenarios } from "./scenarios/index.ts";

/** A scenario to explore, or one of its mistakes to find. */
export interface Task {
  readonly scenario: string;
  /** The place of the mistake among the scenario's. @default - none is planted */
  readonly mistake?: number | undefined;
}

parentPort?.on("message", async ({ scenario: name, mistake: index }: Task) => {
  const scenario = scenarios.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario has the name ${name}`);
  const mistake = index === undefined ? undefined : scenario.mistakes[index];
  const result: Exploration = mistake === undefined ? await explore(scenario) : await find(scenario, mistake);
  parentPort?.postMessage(result);
});
