/**
 * The app of this repository, here: synthesized, and run on this machine with nothing to set up.
 *
 * Its five systems at work at the same time, each with the mishaps that can befall it. Prints what happens, and ends
 * with an audit. Exits with 1 if anything is wrong, and ends its processes whatever happens.
 */

import { EngineUnavailableError } from "@leasehold/local";
import { Interruption, interruption } from "./interruption.ts";
import type { Scenario } from "./scenario.ts";
import { Imports } from "./scenarios/imports/scenario.ts";
import { stockSettings } from "./scenarios/stock-levels/plan.ts";
import { StockLevels } from "./scenarios/stock-levels/scenario.ts";
import { Tasks } from "./scenarios/tasks/scenario.ts";
import { Tickets } from "./scenarios/tickets/scenario.ts";
import { UnpaidOrders } from "./scenarios/unpaid-orders/scenario.ts";
import { Screen } from "./screen.ts";
import { setStage } from "./stage.ts";

const screen = new Screen(Date.now());

async function demonstrate(resources: AsyncDisposableStack): Promise<boolean> {
  if (process.platform === "win32") throw new Interruption("Windows has no SIGSTOP: use WSL.", 1);
  screen.title("Leasehold: five systems that share one lease table, and what can go wrong in each");
  const scenarios: Scenario[] = [];
  const stage = await setStage(resources, screen, stockSettings, (event) => {
    if (event.type === "error") screen.note(`${event.where}: ${String(event.error)}`);
    for (const scenario of scenarios) scenario.hear(event);
  });
  for (const System of [UnpaidOrders, Imports, StockLevels, Tasks, Tickets]) {
    const scenario = new System(stage);
    scenarios.push(scenario);
    screen.about(scenario.system, scenario.about);
  }
  screen.header();
  await Promise.all(scenarios.map((scenario) => scenario.prepare()));
  const outcomes = await Promise.all(
    scenarios.map(async (scenario) => ({ system: scenario.system, ...(await scenario.play()) })),
  );
  screen.audit(outcomes);
  const checks = outcomes.flatMap((outcome) => outcome.checks);
  const wrong = checks.filter(({ ok }) => !ok).length;
  const isRight = wrong === 0;
  if (isRight) for (const { system, inShort } of outcomes) screen.about(system, inShort);
  const count = checks.length;
  screen.verdict(isRight, isRight ? `All ${count} checks hold.` : `${wrong} of ${count} checks FAILED.`);
  return isRight;
}

async function main(): Promise<number> {
  await using resources = new AsyncDisposableStack();
  const isRight = await Promise.race([demonstrate(resources), interruption()]);
  return isRight ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const isExplained = error instanceof Interruption || error instanceof EngineUnavailableError;
  screen.verdict(false, isExplained ? error.message : String(error instanceof Error ? error.stack : error));
  // What was interrupted is still under way.
  process.exit(error instanceof Interruption ? error.exitCode : 1);
}
