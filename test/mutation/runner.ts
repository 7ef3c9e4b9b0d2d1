/**
 * Runs each test once for every mutant that it reaches and that no other test has seen: vitest repeats it, with its
 * hooks, and another mutant is switched on each time. Modules are loaded once.
 *
 * A test that fails with a mutant has to pass again without it; otherwise the process is spoilt, and the verdict is left
 * to a fresh one.
 */
import { appendFileSync, openSync, readFileSync, writeSync } from "node:fs";
import { relative } from "node:path";
import { type RunnerTestCase, type RunnerTestFile, TestRunner, vi } from "vitest";
import { activeFile, type Note, notesFile, type Plan, planFile } from "./plan.ts";
import { root } from "./scope.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The mutant that is active from the start, while modules are loaded. */
    mutant: string;
  }
}

/** What the instrumented sources share with the program that switches their mutants. */
interface Switches {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
}

/** One run of a test: with a mutant, or without any. */
interface Try {
  readonly mutant: string | undefined;
  /** Whether the test has just passed without a mutant. */
  readonly isAfterClean: boolean;
}

/** A failure with a mutant, until the test has run without it once more. */
interface Failure {
  readonly mutant: string;
  readonly isCertain: boolean;
  readonly timedOut: boolean;
}

const shared = globalThis as { __stryker__?: Switches };
shared.__stryker__ ??= {};
const switches = shared.__stryker__;
const { judging }: Plan = JSON.parse(readFileSync(planFile, "utf8"));
const active = openSync(activeFile, "r+");
const killed = new Set<string>();
/** This process is spoilt: nothing more is judged in it. */
let isSpoilt = false;

function note(line: Note): void {
  appendFileSync(notesFile, `${JSON.stringify(line)}\n`);
}

function nameOf(test: RunnerTestCase): string {
  const names = [test.name];
  for (let suite = test.suite; suite !== undefined; suite = suite.suite) names.unshift(suite.name);
  return names.join(" > ");
}

export default class MutationRunner extends TestRunner {
  #queue: string[] = [];
  #try: Try | undefined;
  #failure: Failure | undefined;
  #isClean = false;
  #startedAt = 0;
  /** The mutant of the whole run, where modules are to be loaded with it. */
  readonly #atLoad: string | undefined;

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    this.#atLoad = this.injectValue("mutant");
    if (this.#atLoad === undefined) return;
    vi.resetModules();
    switches.activeMutant = this.#atLoad;
  }

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test);
    if (judging === undefined || this.#atLoad !== undefined || test.mode === "skip") return;
    this.#queue = (judging.reached[test.id] ?? []).filter((id) => !killed.has(id));
    if (this.#queue.length === 0 || test.fails || isSpoilt) {
      test.mode = "skip";
      return;
    }
    const isSuspect = (id: string): number => Number(judging.suspects.includes(id));
    this.#queue.sort((one, other) => isSuspect(other) - isSuspect(one));
    this.#isClean = false;
    this.#failure = undefined;
    // Once as it is, and then each mutant, perhaps followed by a run without it.
    test.repeats = 2 * this.#queue.length;
  }

  override onBeforeTryTask(test: RunnerTestCase, options: { retry: number; repeats: number }): void {
    super.onBeforeTryTask(test, options);
    this.#startedAt = performance.now();
    if (this.#atLoad !== undefined) return;
    if (judging === undefined) {
      switches.currentTestId = test.id;
      return;
    }
    if (test.result !== undefined) test.result.attempts = [];
    this.#try = this.#nextTry(options.repeats);
    const mutant = this.#try?.mutant;
    switches.activeMutant = mutant;
    switches.hitCount = mutant === undefined ? undefined : 0;
    switches.hitLimit = mutant === undefined ? undefined : judging.hitLimits[mutant];
    // What hangs without a mutant, after one with which it failed, hangs in a loop that this one has left behind.
    writeSync(active, `${mutant ?? this.#failure?.mutant ?? "none"} ${test.id}`.padEnd(80), 0);
  }

  #nextTry(repeats: number): Try | undefined {
    if (isSpoilt) return undefined;
    if (repeats === 0 || this.#failure !== undefined) return { mutant: undefined, isAfterClean: false };
    const mutant = this.#queue.shift();
    return mutant === undefined ? undefined : { mutant, isAfterClean: this.#isClean };
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const isOver = judging !== undefined && this.#atLoad === undefined && this.#try === undefined;
    if (isOver) return;
    try {
      await TestRunner.getTestFn(test)();
    } catch (error) {
      // Vitest compares the two values for its report. Where a getter of theirs throws, it does not come back to this runner.
      throw error instanceof Error && "actual" in error ? new Error(error.message) : error;
    }
  }

  override async onAfterRetryTask(
    test: RunnerTestCase,
    options: { retry: number; repeats: number },
  ): Promise<void> {
    await super.onAfterRetryTask(test, options);
    const { result } = test;
    if (result === undefined || this.#atLoad !== undefined) return;
    const file = relative(root, test.file.filepath);
    const [error] = result.errors ?? [];
    const hasFailed = result.state === "fail";
    if (judging === undefined) {
      switches.currentTestId = undefined;
      const hits = switches.mutantCoverage?.perTest[test.id] ?? {};
      const ms = performance.now() - this.#startedAt;
      note(
        hasFailed
          ? { failed: nameOf(test), file, error: error?.message ?? "" }
          : { covered: test.id, file, hits, ms },
      );
      return;
    }
    switches.activeMutant = undefined;
    const isEndless = (switches.hitCount ?? 0) > (switches.hitLimit ?? Number.POSITIVE_INFINITY);
    const timedOut = isEndless || (error?.message ?? "").startsWith("Test timed out");
    result.state = "pass";
    result.errors = [];
    this.#judge(test, file, hasFailed, timedOut);
  }

  #judge(test: RunnerTestCase, file: string, hasFailed: boolean, timedOut: boolean): void {
    const { mutant, isAfterClean } = this.#try ?? {};
    if (this.#try === undefined) return;
    this.#try = undefined;
    if (mutant !== undefined) {
      this.#isClean = false;
      if (hasFailed) this.#failure = { mutant, isCertain: isAfterClean === true, timedOut };
      return;
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined && (!hasFailed || failure.isCertain)) {
      killed.add(failure.mutant);
      note({ killed: failure.mutant, file, by: nameOf(test), timedOut: failure.timedOut });
    } else if (failure !== undefined) note({ suspect: failure.mutant, test: test.id });
    this.#isClean = !hasFailed;
    if (!hasFailed) return;
    isSpoilt = true;
    if (failure === undefined) note({ dirty: test.id, file });
  }

  override async onAfterRunTask(test: RunnerTestCase): Promise<void> {
    super.onAfterRunTask(test);
    if (judging === undefined || isSpoilt || this.#atLoad !== undefined) return;
    note({ done: test.id, file: relative(root, test.file.filepath) });
  }

  override onAfterRunFiles(files: RunnerTestFile[]): void {
    super.onAfterRunFiles(files);
    if (judging === undefined) note({ loaded: Object.keys(switches.mutantCoverage?.static ?? {}) });
  }
}
