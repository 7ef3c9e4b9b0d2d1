/** Walks through every state that can be reached, breadth first; a state that was met before is not looked at again. */

/** One thing that can happen in a state, and the state that it leads to. */
export interface Step<State> {
  readonly says: string;
  readonly to: State;
}

/** A system, as far as the walk needs to know it. */
export interface System<State> {
  readonly start: State;
  readonly steps: (state: State) => readonly Step<State>[];
  /** States with the same text are one state. */
  readonly textOf: (state: State) => string;
  /** What must not be in a state; undefined where nothing is wrong. */
  readonly wrongIn: (state: State) => string | undefined;
}

/** What a walk has found. */
export interface Found {
  readonly states: number;
  /** How many steps were looked at; many lead to states that were met before. */
  readonly steps: number;
  /** How many steps the state has that takes the most to reach. */
  readonly depth: number;
  /** The first thing that is wrong, and the shortest way to it; undefined where nothing is. */
  readonly wrong: { readonly what: string; readonly way: readonly string[] } | undefined;
}

/** How a state was met first. */
interface Met<State> {
  readonly state: State;
  readonly says: string;
  readonly from: Met<State> | undefined;
}

/** Stops at the first state in which something is wrong; throws where there are more than `mostStates`. */
export function explore<State>(system: System<State>, mostStates: number): Found {
  const known = new Set([system.textOf(system.start)]);
  let frontier: Met<State>[] = [{ state: system.start, says: "the beginning", from: undefined }];
  let looked = 0;
  for (let depth = 0; ; depth += 1) {
    const next: Met<State>[] = [];
    for (const met of frontier) {
      for (const { says, to } of system.steps(met.state)) {
        looked += 1;
        const text = system.textOf(to);
        if (known.has(text)) continue;
        known.add(text);
        const step = { state: to, says, from: met };
        const what = system.wrongIn(to);
        if (what !== undefined)
          return { states: known.size, steps: looked, depth: depth + 1, wrong: { what, way: wayTo(step) } };
        next.push(step);
      }
    }
    if (known.size > mostStates) throw new Error(`there are more than ${mostStates} states`);
    if (next.length === 0) return { states: known.size, steps: looked, depth, wrong: undefined };
    frontier = next;
  }
}

function wayTo<State>(met: Met<State> | undefined): readonly string[] {
  return met === undefined || met.from === undefined ? [] : [...wayTo(met.from), met.says];
}
