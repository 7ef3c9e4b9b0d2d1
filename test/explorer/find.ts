import type { Mistake } from "../simulation/simulation.ts";
import { type Bounds, type Exploration, explore } from "./explore.ts";
import type { AnyScenario } from "./scenario.ts";

/** Looks for a mistake: first without any fault, then with one more each time, for most show early. */
export async function find(
  scenario: AnyScenario,
  mistake: Mistake,
  { faults = scenario.faults, ...bounds }: Omit<Bounds, "planted"> = {},
): Promise<Exploration> {
  let last: Exploration | undefined;
  for (let count = 0; count <= faults; count += 1) {
    const found = await explore(scenario, { ...bounds, faults: count, planted: mistake });
    last = {
      ...found,
      states: found.states + (last?.states ?? 0),
      courses: found.courses + (last?.courses ?? 0),
      milliseconds: found.milliseconds + (last?.milliseconds ?? 0),
    };
    if (found.violation !== undefined) break;
  }
  if (last === undefined) throw new Error(`faults is ${faults}; allowed: a whole number from 0`);
  return last;
}
