import type { DemonstrationOptions } from "./command-line.ts";
import type { Outcome, Scenario } from "./scenario.ts";
import { Imports } from "./scenarios/imports.ts";
import { StockLevels, stockSettings } from "./scenarios/stock-levels.ts";
import { Tasks } from "./scenarios/tasks.ts";
import { Tickets } from "./scenarios/tickets.ts";
import { UnpaidOrders } from "./scenarios/unpaid-orders.ts";
import type { Screen } from "./screen.ts";
import { setStage, startDynamoDb } from "./stage.ts";
import { measureMachine, NotStaged, stretchFor, Tempo } from "./tempo.ts";
import { tellVerdict } from "./verdict.ts";

/** How the demonstration came out, and where its leases are. */
export interface Demonstrated {
  readonly code: number;
  readonly place: { readonly endpoint: string; readonly tableName: string };
}

/** Plays the five systems. What it starts ends with the resources. */
export async function demonstrate(
  resources: AsyncDisposableStack,
  screen: Screen,
  { all, stretch }: DemonstrationOptions,
  signal: AbortSignal,
): Promise<Demonstrated> {
  const start = () => startDynamoDb(resources, screen, signal);
  // One that is named is there already, or it is not: that should be known before anything else takes time.
  const named = process.env.DYNAMODB_ENDPOINT ? await start() : undefined;
  const tempo = new Tempo(stretch ?? (await measured(screen, signal)));
  const settings = stockSettings(tempo);
  const engine = named === undefined ? start() : Promise.resolve(named);
  const stage = await setStage(resources, { engine, screen, tempo, settings, signal });
  const systems = [UnpaidOrders, Imports, StockLevels, Tasks, Tickets];
  const scenarios: readonly Scenario[] = systems.map((System) => new System(stage));
  const preparing = screen.step("Starting first instances");
  await Promise.all(scenarios.map((scenario) => scenario.prepare?.()));
  preparing.done("each of them a process, frozen while it has nothing to do");

  screen.gap();
  for (const { system, about } of scenarios) screen.about(system, about);
  screen.begin();
  const outcomes = await Promise.race([
    Promise.all(scenarios.map(async (scenario) => ({ system: scenario.system, ...(await play(scenario)) }))),
    tempo.tooLong(),
  ]);
  screen.close();
  const { endpoint = "" } = await engine;
  const place = { endpoint, tableName: stage.app.tableName("Leases/Resource") };
  return { code: tellVerdict(screen, outcomes, all), place };
}

async function measured(screen: Screen, signal: AbortSignal): Promise<number> {
  const step = screen.step("Measuring this machine");
  const stretch = stretchFor(await measureMachine(signal));
  step.done(
    stretch === 1
      ? "quick enough for the plan"
      : `slow, or busy with something else: every time of the plan is ${stretch} times as long`,
  );
  return stretch;
}

/** A scenario that cannot go on leaves the others alone. */
async function play(scenario: Scenario): Promise<Outcome> {
  try {
    return await scenario.play();
  } catch (error) {
    if (!(error instanceof NotStaged)) throw error;
    return { checks: [], inShort: "", late: [error.message] };
  }
}
