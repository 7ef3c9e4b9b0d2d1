/**
 * One operation on an object, as a linearizability checker sees it: it takes effect at one moment between its call and its
 * answer.
 */
export interface Step<State> {
  readonly from: number;
  /** Undefined where the outcome is unknown: it took effect at any time since its call, or never. */
  readonly to: number | undefined;
  /** The object's state after it; undefined where it cannot have had this outcome in this state. */
  apply(state: State): State | undefined;
}

/** What the search has found. */
export type Search<State, Each extends Step<State>> =
  | { readonly isLinearizable: true }
  | {
      readonly isLinearizable: false;
      /** The state after the longest order that was found. */
      readonly state: State;
      /** One of these would have to come next, and none of them can. */
      readonly stuck: readonly Each[];
      /** How many answered operations are in that order. */
      readonly placed: number;
    };

/** How far an order has come. */
interface Position<State, Each> {
  readonly state: State;
  /** All answered operations before this one are in the order. */
  readonly first: number;
  /** Those after it that are in the order, too. */
  readonly ahead: ReadonlySet<number>;
  /** Those without an answer that are in the order. */
  readonly effective: ReadonlySet<number>;
  readonly placed: number;
  /** What may come next and was not tried yet. */
  readonly next: { readonly step: Each; readonly index: number }[];
}

/**
 * Looks for an order of all answered operations, and of some of those without an answer, which agrees with the times and with
 * the object: the search of Wing and Gong, which remembers where it has been, as Lowe's does.
 *
 * `keyOf` gives a text that is the same for equal states.
 */
export function linearize<State, Each extends Step<State>>(
  steps: readonly Each[],
  initial: State,
  keyOf: (state: State) => string,
): Search<State, Each> {
  const inOrder = [...steps].sort((one, other) => one.from - other.from);
  const answered = inOrder.filter(({ to }) => to !== undefined);
  const open = inOrder.filter(({ to }) => to === undefined);
  const seen = new Set<string>();

  const reach = (
    state: State,
    first: number,
    ahead: Set<number>,
    effective: ReadonlySet<number>,
    placed: number,
  ) => {
    let from = first;
    while (ahead.delete(from)) from += 1;
    const position: Position<State, Each> = { state, first: from, ahead, effective, placed, next: [] };
    const deadline = candidates(answered, position);
    for (const [index, step] of open.entries()) {
      if (step.from > deadline) break;
      // Tried last: nothing says that it took effect.
      if (!effective.has(index)) position.next.unshift({ step, index });
    }
    return position;
  };

  let deepest = reach(initial, 0, new Set(), new Set(), 0);
  const stack = [deepest];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (top.first === answered.length) return { isLinearizable: true };
    const chosen = top.next.pop();
    if (chosen === undefined) {
      stack.pop();
      continue;
    }
    const { step, index } = chosen;
    const state = step.apply(top.state);
    if (state === undefined) continue;
    const isOpen = step.to === undefined;
    const ahead = new Set(top.ahead);
    if (!isOpen) ahead.add(index);
    const effective = isOpen ? new Set([...top.effective, index]) : top.effective;
    const reached = reach(state, top.first, ahead, effective, top.placed + (isOpen ? 0 : 1));
    const key = `${reached.first}|${[...reached.ahead].sort()}|${[...effective].sort()}|${keyOf(state)}`;
    if (seen.has(key)) continue;
    seen.add(key);
    if (reached.placed > deepest.placed) deepest = reached;
    stack.push(reached);
  }
  const { state, placed } = deepest;
  const stuck = reach(state, deepest.first, new Set(deepest.ahead), deepest.effective, placed).next;
  return { isLinearizable: false, state, placed, stuck: stuck.map(({ step }) => step) };
}

/**
 * Collects the answered operations that may come next: none that is left out has ended before they began. Gives the time
 * when the first of those that are left out has ended.
 */
function candidates<State, Each extends Step<State>>(
  answered: readonly Each[],
  { first, ahead, next }: Position<State, Each>,
): number {
  let deadline = Number.POSITIVE_INFINITY;
  for (let index = first; index < answered.length; index += 1) {
    const step = answered[index];
    if (step === undefined || step.from > deadline) break;
    if (ahead.has(index)) continue;
    deadline = Math.min(deadline, step.to ?? deadline);
    next.unshift({ step, index });
  }
  return deadline;
}
