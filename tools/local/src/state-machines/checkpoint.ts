// Where a redrive resumes: the states that were entered and not left.

import type { Variables } from "./jsonata.ts";

/** How far a sequence of states has come: where a redrive resumes. */
export interface BranchCheckpoint {
  /** The state that is next or that was entered; undefined before the first. */
  at?: StateCheckpoint;
  /** Set once the sequence has ended by itself. */
  done?: { readonly output: unknown };
}

/** A state that is next, or that was entered and not left. */
export interface StateCheckpoint {
  readonly name: string;
  readonly input: unknown;
  /** The variables of its scope, as they were at its entry. */
  readonly variables: Variables;
  /** When it was entered, and the number of that event; undefined while it is next. */
  entered?: { readonly time: string; readonly event: number };
  /** Of Parallel the branches, of Map the iterations, as far as they were begun in the present attempt. */
  readonly inner: BranchCheckpoint[];
}
