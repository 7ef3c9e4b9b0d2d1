import type { Plant } from "../worlds/simulation.ts";
import type { Line } from "../worlds/world.ts";
import { Course } from "./course.ts";
import { digest } from "./digest.ts";
import type { AnyScenario } from "./scenario.ts";

/** What an exploration came to. */
export interface Exploration {
  readonly scenario: string;
  readonly faults: number;
  /** Moments of different past at which several things could happen. */
  readonly states: number;
  /** Courses that were played, each from the beginning. */
  readonly courses: number;
  /** The most events of one course. */
  readonly depth: number;
  readonly milliseconds: number;
  /** The first thing that must not be, and the choices that lead to it. */
  readonly violation?: { readonly text: string; readonly path: readonly number[] } | undefined;
}

/** How far an exploration goes. */
export interface Bounds {
  /** @default - the scenario's */
  readonly faults?: number;
  /** @default - until all courses are played */
  readonly milliseconds?: number;
  readonly plant?: Plant | undefined;
}

/**
 * Plays every course of a scenario.
 *
 * A course cannot be taken back, for promises cannot: each begins anew, takes the choices of an earlier one up to some
 * moment, and another one there. A course that comes to a moment that is known, with no more faults left than then, has
 * no new future.
 */
export async function explore(scenario: AnyScenario, bounds: Bounds = {}): Promise<Exploration> {
  const { faults = scenario.faults, milliseconds = Number.POSITIVE_INFINITY, plant } = bounds;
  const since = performance.now();
  const seen = new Map<string, number>();
  const left: { readonly path: readonly number[]; readonly faults: number }[] = [{ path: [], faults }];
  const counts = { courses: 0, depth: 0 };
  let violation: Exploration["violation"];
  const putRight = plant?.();
  const { stackTraceLimit } = Error;
  // Nobody reads the stacks of the errors that are expected, and they take a quarter of the time.
  Error.stackTraceLimit = 0;
  try {
    while (violation === undefined && performance.now() - since < milliseconds) {
      const next = left.pop();
      if (next === undefined) break;
      const course = new Course(scenario);
      const path = [...next.path];
      let faultsLeft = faults;
      counts.courses += 1;
      for (let depth = 0; ; depth += 1) {
        const choices = course.choices(faultsLeft);
        counts.depth = Math.max(counts.depth, depth);
        if (choices.length === 0) break;
        const isNew = depth >= path.length;
        if (isNew && choices.length > 1) {
          const state = digest(course.fingerprint(faultsLeft));
          if ((seen.get(state) ?? -1) >= faultsLeft) break;
          seen.set(state, faultsLeft);
          // The last one is taken first: faults come after what is ordinary.
          for (let index = choices.length - 1; index > 0; index -= 1) {
            left.push({ path: [...path, index], faults: faultsLeft });
          }
        }
        if (isNew) path.push(0);
        const choice = choices[path[depth] ?? 0];
        if (choice === undefined) throw new Error(`a course of ${scenario.name} is not the same again`);
        faultsLeft -= choice.faults;
        await course.take(choice);
      }
      const text = course.world.violation;
      if (text !== undefined) violation = { text, path };
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    putRight?.();
  }
  return {
    scenario: scenario.name,
    faults,
    states: seen.size,
    ...counts,
    milliseconds: performance.now() - since,
    violation,
  };
}

/** Looks for a mistake: first without any fault, then with one more each time, for most show early. */
export async function find(scenario: AnyScenario, plant: Plant): Promise<Exploration> {
  let last: Exploration | undefined;
  for (let count = 0; count <= scenario.faults; count += 1) {
    const found = await explore(scenario, { faults: count, plant });
    last = {
      ...found,
      states: found.states + (last?.states ?? 0),
      courses: found.courses + (last?.courses ?? 0),
      milliseconds: found.milliseconds + (last?.milliseconds ?? 0),
    };
    if (found.violation !== undefined) break;
  }
  if (last === undefined) throw new Error(`${scenario.name} is for no number of faults`);
  return last;
}

/** Plays one course again, and gives its story. */
export async function retell(
  scenario: AnyScenario,
  path: readonly number[],
  { faults = scenario.faults, plant }: Bounds = {},
): Promise<readonly Line[]> {
  const putRight = plant?.();
  try {
    const course = new Course(scenario, true);
    let faultsLeft = faults;
    for (const index of path) {
      const choice = course.choices(faultsLeft)[index];
      if (choice === undefined) break;
      faultsLeft -= choice.faults;
      await course.take(choice);
    }
    return course.world.timeline;
  } finally {
    putRight?.();
  }
}
