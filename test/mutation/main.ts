import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { measuredCommit } from "../../tools/bench/stamp.ts";
import { judgeAtLoad } from "./at-load.ts";
import { explained } from "./explained.ts";
import { type Mutant, mutate } from "./mutants.ts";
import { type Judging, type Note, planFile, sourcesFile } from "./plan.ts";
import { type Result, tell, writePage } from "./report.ts";
import { root, testFiles, workFolder } from "./scope.ts";
import { play } from "./tests.ts";

const usage = `npm run evidence -- mutation [--only PATH]... [--fresh]

  --only PATH   mutants of the sources whose path contains this, alone; docs/evidence.md stays as it is
  --fresh       forgets what earlier runs have seen

Ctrl-C loses nothing: the next run goes on where this one stopped.`;

/** A test that takes so much longer than it does alone hangs. */
const testTimeoutMs = 3_000;
const slowTestTimeoutMs = 20_000;
/** What takes longer alone, and worlds, judge what nothing quicker reaches, and at last what none has seen or explained. */
const quickMs = 250;
const withReason = new Set(explained.flatMap(({ mutants: keys }) => keys));

/** The sources that make statements. */
const statements = /\/statements\/|(-writes|expressions|statements)\.ts$/;

const resultsFile = join(workFolder, "results.json");
const coverageFile = join(workFolder, "coverage.json");

/** What is known of a mutant, and of which texts that holds. */
interface Kept extends Result {
  /** Of its source, with the test file that has seen it. */
  readonly of: string;
  /** The test files that have not seen it, as they were. */
  readonly passed?: Set<string>;
}

/** The same, as it is stored: files that have not seen a mutant by their places in one list. */
interface Stored {
  readonly files: readonly string[];
  readonly mutants: Readonly<Record<string, Omit<Kept, "passed"> & { readonly passed?: readonly number[] }>>;
}

/** What a test file reaches. */
interface FileCoverage {
  readonly of: string;
  readonly tests: Record<string, { readonly hits: Record<string, number>; readonly ms: number }>;
}

interface Coverage {
  /** The sources whose mutants these are. */
  readonly of: string;
  readonly files: Record<string, FileCoverage>;
  loaded: string[];
}

const textOf = (file: string): string => readFileSync(join(root, file), "utf8");
/** A test file, with the contracts that it plays. */
function textsOf(file: string): string[] {
  const text = textOf(file);
  const contracts = text.matchAll(/"(\.[^"]+-contract\.ts)"/g);
  return [text, ...Array.from(contracts, ([, path = ""]) => textOf(join(dirname(file), path)))];
}
const hash = (...texts: readonly string[]): string =>
  createHash("sha256").update(texts.join("\0")).digest("hex").slice(0, 12);
const read = <T>(file: string): T | undefined =>
  existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as T) : undefined;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    fresh: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

class Run {
  readonly #mutants: readonly Mutant[];
  readonly #byId: ReadonlyMap<string, Mutant>;
  readonly #coverage: Coverage;
  readonly #suite: Readonly<Record<string, string>>;
  readonly #kept: Record<string, Kept> = {};
  readonly #sourceHashes: ReadonlyMap<string, string>;

  constructor(mutants: readonly Mutant[]) {
    this.#mutants = mutants;
    this.#byId = new Map(mutants.map((mutant) => [mutant.id, mutant]));
    this.#suite = Object.fromEntries(testFiles().map((file) => [file, hash(...textsOf(file))]));
    const sources = [...new Set(mutants.map(({ file }) => file))];
    this.#sourceHashes = new Map(sources.map((file) => [file, hash(textOf(file))]));
    const of = hash(...this.#sourceHashes.values());
    const coverage = read<Coverage>(coverageFile);
    this.#coverage = coverage?.of === of ? coverage : { of, files: {}, loaded: [] };
    for (const file of Object.keys(this.#coverage.files))
      if (!(file in this.#suite)) delete this.#coverage.files[file];
    const { files = [], mutants: kept = {} } = read<Stored>(resultsFile) ?? {};
    for (const mutant of mutants) {
      const known = kept[mutant.key];
      if (known === undefined || known.of !== this.#hashFor(mutant, known.file)) continue;
      const { passed, ...result } = known;
      this.#kept[mutant.key] =
        passed === undefined
          ? result
          : { ...result, passed: new Set(passed.map((place) => files[place] ?? "")) };
    }
  }

  /** By the mutant's key. */
  get results(): Readonly<Record<string, Result>> {
    return this.#kept;
  }

  async play(isMeant: (mutant: Mutant) => boolean): Promise<void> {
    const open = this.#mutants.filter((mutant) => {
      const status = this.#kept[mutant.key]?.status;
      return isMeant(mutant) && status !== "killed" && status !== "timedOut";
    });
    if (open.every(({ key }) => this.#isThrough(key))) return;
    await this.#cover();
    await this.#judge(open);
    await this.#judgeAtLoad(open);
    this.#save();
  }

  #isThrough(key: string): boolean {
    const passed = this.#kept[key]?.passed;
    return Object.keys(this.#suite).every((file) => passed?.has(this.#asItIs(file)));
  }

  /** A test file with its text's hash. */
  #asItIs(file: string): string {
    return `${file} ${this.#suite[file]}`;
  }

  /** Notes what the test files reach that are new or have changed. */
  async #cover(): Promise<void> {
    const { files } = this.#coverage;
    const stale = Object.keys(this.#suite).filter((file) => files[file]?.of !== this.#suite[file]);
    if (stale.length === 0) return;
    const { notes } = await play({ files: stale }, () => {});
    for (const file of stale) files[file] = { of: this.#suite[file] ?? "", tests: {} };
    const loaded = new Set(this.#coverage.loaded);
    for (const note of notes) {
      if ("failed" in note)
        throw new Error(`${note.file}: ${note.failed} fails without a mutant: ${note.error}`);
      if ("loaded" in note) for (const id of note.loaded) loaded.add(id);
      const { tests } = ("covered" in note ? files[note.file] : undefined) ?? {};
      if ("covered" in note && tests !== undefined) tests[note.covered] = { hits: note.hits, ms: note.ms };
    }
    this.#coverage.loaded = [...loaded];
    writeFileSync(coverageFile, JSON.stringify(this.#coverage));
  }

  /** Judges the mutants that tests reach while they run, until every test has seen or passed each. */
  async #judge(open: readonly Mutant[]): Promise<void> {
    const alive = new Set(open.map(({ id }) => id));
    const suspects = new Map<string, number>();
    const dirty = new Set<string>();
    const through = new Set<string>();
    const endless = new Set<string>();
    let isLast = false;
    let plan = this.#toRun(alive, through, endless, isLast);
    const takeNotes = (notes: readonly Note[]): void => {
      for (const note of notes) {
        if ("done" in note) through.add(note.done);
        // Files are played one after the other: those before this one are through.
        if ("done" in note)
          this.#pass(alive, plan.reachedIn, plan.files.slice(0, plan.files.indexOf(note.file)));
        if ("suspect" in note) {
          const times = (suspects.get(note.suspect) ?? 0) + 1;
          suspects.set(note.suspect, times);
          // Three fresh processes were spoilt in the same way: by this mutant.
          if (times === 3 && alive.delete(note.suspect))
            this.#keep(note.suspect, {
              status: "killed",
              by: "a spoilt process",
              file: this.#fileOf(note.test),
            });
        }
        // A test that fails alone in a fresh process, too, says nothing about mutants.
        if ("dirty" in note && dirty.has(note.dirty)) through.add(note.dirty);
        if ("dirty" in note) dirty.add(note.dirty);
        if (!("killed" in note)) continue;
        alive.delete(note.killed);
        const { timedOut, by, file } = note;
        this.#keep(note.killed, { status: timedOut ? "timedOut" : "killed", by, file });
      }
      this.#save();
      if (process.stdout.isTTY) process.stdout.write(`\r${alive.size} of ${open.length} mutants not seen `);
    };
    for (;;) {
      if (plan.files.length === 0) {
        if (isLast) break;
        isLast = true;
        through.clear();
      }
      plan = this.#toRun(alive, through, endless, isLast);
      if (plan.files.length === 0) continue;
      const { files, reached, hitLimits } = plan;
      const timeoutMs = isLast ? slowTestTimeoutMs : testTimeoutMs;
      const judging: Judging = {
        testTimeoutMs: timeoutMs,
        reached,
        hitLimits,
        suspects: [...suspects.keys()],
      };
      const { notes, stuck } = await play({ files, judging }, takeNotes);
      if (stuck !== undefined) {
        if (!alive.delete(stuck.mutant)) {
          // A mutant that was seen may have left a loop behind: a fresh process goes on.
          if (notes.some((note) => "killed" in note)) continue;
          throw new Error(`the tests hang in ${stuck.test}, mutant ${stuck.mutant}`);
        }
        const file = this.#fileOf(stuck.test);
        this.#keep(stuck.mutant, { status: "timedOut", by: "a loop without end", file });
        // Others may see its like without a process of its own.
        endless.add(file);
      } else if (notes.every((note) => !("suspect" in note || "dirty" in note || "killed" in note)))
        plan = { ...plan, files: [] };
    }
    for (const id of alive) if (this.#isReached(id)) this.#keepUnseen(id, "survived");
  }

  /** Remembers that these files have not seen what is still alive: a run that is cut off goes on after them. */
  #pass(
    alive: ReadonlySet<string>,
    reachedIn: ReadonlyMap<string, ReadonlySet<string>>,
    files: readonly string[],
  ) {
    for (const file of files)
      for (const id of reachedIn.get(file) ?? []) {
        if (!alive.has(id)) continue;
        const key = this.#byId.get(id)?.key ?? "";
        if (this.#kept[key]?.passed === undefined) this.#keep(id, { status: "open" }, new Set());
        this.#kept[key]?.passed?.add(this.#asItIs(file));
      }
  }

  #fileOf(test: string): string {
    return Object.entries(this.#coverage.files).find(([, { tests }]) => test in tests)?.[0] ?? "";
  }

  #isReached(id: string): boolean {
    return Object.values(this.#coverage.files).some(({ tests }) =>
      Object.values(tests).some(({ hits }) => id in hits),
    );
  }

  /** Which tests are still to be run with which mutants. */
  #toRun(
    alive: ReadonlySet<string>,
    through: ReadonlySet<string>,
    endless: ReadonlySet<string>,
    isLast: boolean,
  ) {
    const reached: Record<string, string[]> = {};
    const reachedIn = new Map<string, Set<string>>();
    const hitLimits: Record<string, number> = {};
    const costs = new Map<string, number>();
    const reachedQuickly = new Set<string>();
    const isQuick = (file: string, ms: number): boolean => ms <= quickMs && !file.includes("/worlds.");
    for (const [file, { tests }] of Object.entries(this.#coverage.files))
      for (const { hits, ms } of Object.values(tests))
        if (isQuick(file, ms)) for (const id in hits) reachedQuickly.add(id);
    for (const [file, { of, tests }] of Object.entries(this.#coverage.files)) {
      if (this.#suite[file] !== of) continue;
      for (const [test, { hits, ms }] of Object.entries(tests)) {
        if (through.has(test)) continue;
        const ids = Object.keys(hits).filter((id) => {
          const key = this.#byId.get(id)?.key ?? "";
          const passed = this.#kept[key]?.passed?.has(this.#asItIs(file)) === true;
          const isLeft = !isQuick(file, ms) && reachedQuickly.has(id);
          return alive.has(id) && (isLast ? isLeft && !withReason.has(key) : !passed && !isLeft);
        });
        if (ids.length === 0) continue;
        reached[test] = ids;
        reachedIn.set(file, new Set([...(reachedIn.get(file) ?? []), ...ids]));
        costs.set(
          file,
          (costs.get(file) ?? 0) + (endless.has(file) ? 1e9 : file.includes("/worlds.") ? 1e8 : ms),
        );
        for (const id of ids) hitLimits[id] = Math.max(hitLimits[id] ?? 2_000, 20 * (hits[id] ?? 0));
      }
    }
    const files = [...costs.keys()].sort((one, other) => (costs.get(one) ?? 0) - (costs.get(other) ?? 0));
    return { files, reached, reachedIn, hitLimits };
  }

  /** Judges what acts only while modules are loaded, by the tests that reach its source at all. */
  async #judgeAtLoad(open: readonly Mutant[]): Promise<void> {
    const loaded = new Set(this.#coverage.loaded);
    // A statement is made once in a process: only a process that begins with its mutant has another one.
    const isMadeOnce = ({ file, key }: Mutant): boolean =>
      statements.test(file) && this.#kept[key]?.status === "survived";
    const left = open.filter(
      (mutant) => isMadeOnce(mutant) || (!this.#isThrough(mutant.key) && !this.#isReached(mutant.id)),
    );
    const judged = left.filter((mutant) => isMadeOnce(mutant) || loaded.has(mutant.id));
    for (const mutant of left) if (!judged.includes(mutant)) this.#keepUnseen(mutant.id, "unreached");
    const atLoad = judged.map(({ id, file }) => ({ id, files: this.#filesFor(file) }));
    if (atLoad.length === 0) return;
    const files = [...new Set(atLoad.flatMap((mutant) => mutant.files))];
    writeFileSync(planFile, JSON.stringify({ files, judging: { testTimeoutMs } }));
    await judgeAtLoad(atLoad, (id, by, isEndless) => {
      if (by === undefined) this.#keepUnseen(id, "survived");
      else if (isEndless) this.#keep(id, { status: "timedOut", by: "a loop without end", file: by });
      else this.#keep(id, { status: "killed", by: "while it was loaded", file: by });
      this.#save();
    });
  }

  /** The test files that reach a source, the quick ones first. */
  #filesFor(source: string): string[] {
    const costs = new Map<string, number>();
    for (const [file, { tests }] of Object.entries(this.#coverage.files)) {
      let ms = 0;
      let isMeant = false;
      for (const { hits, ms: own } of Object.values(tests)) {
        ms += own;
        isMeant ||= Object.keys(hits).some((id) => this.#byId.get(id)?.file === source);
      }
      if (isMeant && ms < 3_000) costs.set(file, ms);
    }
    return [...costs.keys()].sort((one, other) => (costs.get(one) ?? 0) - (costs.get(other) ?? 0));
  }

  #keepUnseen(id: string, status: "survived" | "unreached"): void {
    this.#keep(id, { status }, new Set(Object.keys(this.#suite).map((file) => this.#asItIs(file))));
  }

  #keep(id: string, result: Result, passed?: Set<string>): void {
    const mutant = this.#byId.get(id);
    if (mutant === undefined) return;
    const of = this.#hashFor(mutant, result.file);
    this.#kept[mutant.key] = passed === undefined ? { ...result, of } : { ...result, of, passed };
  }

  #hashFor({ file }: Mutant, by: string | undefined): string {
    return hash(this.#sourceHashes.get(file) ?? "", by === undefined ? "" : (this.#suite[by] ?? ""));
  }

  #save(): void {
    const places = new Map<string, number>();
    const placeOf = (file: string): number => {
      const place = places.get(file) ?? places.size;
      places.set(file, place);
      return place;
    };
    const mutants = Object.fromEntries(
      Object.entries(this.#kept).map(([key, { passed, ...kept }]) => [
        key,
        passed === undefined ? kept : { ...kept, passed: [...passed].map(placeOf) },
      ]),
    );
    writeFileSync(resultsFile, JSON.stringify({ files: [...places.keys()], mutants } satisfies Stored));
  }
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (values.fresh) rmSync(workFolder, { recursive: true, force: true });
  mkdirSync(workFolder, { recursive: true });
  const { mutants, sources } = await mutate();
  writeFileSync(sourcesFile, JSON.stringify([...sources]));
  const run = new Run(mutants);
  const { only } = values;
  const isMeant = ({ file }: Mutant): boolean =>
    only === undefined || only.some((part) => file.includes(part));
  await run.play(isMeant);
  // The page is of the whole: what a part has shown is told here alone.
  if (only === undefined) await writePage(mutants, run.results, await measuredCommit("test"));
  return tell(mutants.filter(isMeant), run.results);
}

process.exitCode = await main();
