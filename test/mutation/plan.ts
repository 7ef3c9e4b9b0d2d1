/** What the supervising process tells the runner in the worker, and what the runner writes down for it. */
import { join } from "node:path";
import { workFolder } from "./scope.ts";

export interface Plan {
  /** The test files to run, the quick ones first. */
  readonly files: readonly string[];
  /** What is to be judged; without it the tests run once each, and what they reach is noted. */
  readonly judging?: Judging;
}

/** Mutants that tests reach while they run. */
export interface Judging {
  readonly testTimeoutMs: number;
  /** The mutants that a test reaches and that no test has seen, by the test's id. */
  readonly reached: Readonly<Record<string, readonly string[]>>;
  /** How often a mutant may be reached in one test before it counts as a loop without end. */
  readonly hitLimits: Readonly<Record<string, number>>;
  /** Mutants with which a test failed in a process that others may have spoilt before. */
  readonly suspects: readonly string[];
}

/** A line that the runner writes. */
export type Note =
  | {
      readonly covered: string;
      readonly file: string;
      readonly hits: Record<string, number>;
      readonly ms: number;
    }
  /** What was reached outside of tests: while modules were loaded, or in hooks. */
  | { readonly loaded: readonly string[] }
  | { readonly failed: string; readonly file: string; readonly error: string }
  | { readonly killed: string; readonly file: string; readonly by: string; readonly timedOut: boolean }
  | { readonly suspect: string; readonly test: string }
  | { readonly dirty: string; readonly file: string }
  | { readonly done: string; readonly file: string };

/** The instrumented sources, by path. */
export const sourcesFile = join(workFolder, "sources.json");
export const planFile = join(workFolder, "plan.json");
export const notesFile = join(workFolder, "notes.jsonl");
/** The mutant that is active, for when the worker does not come back. */
export const activeFile = join(workFolder, "active");
