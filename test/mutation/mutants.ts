/**
 * The mutants of the sources: StrykerJS's, and what data has beside code: each condition and each assignment of a write
 * is left out once. All of them lie in one instrumented text, behind switches.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Instrumenter } from "@stryker-mutator/instrumenter";
import { dropMutators, textsForPeople } from "./mutators.ts";
import { mutatedFiles, root } from "./scope.ts";

/** One small change of the sources. */
export interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly mutator: string;
  /** The line in which it begins, what it replaces, and by what; the same wherever the line moves. */
  readonly change: string;
  /** File and change: the same for as long as both are. */
  readonly key: string;
}

/** The sources with every mutant in them, by path relative to the root. */
export interface Mutated {
  readonly sources: ReadonlyMap<string, string>;
  readonly mutants: readonly Mutant[];
}

const silent = () => {};
export const logger = {
  ...{ isTraceEnabled: () => false, isDebugEnabled: () => false, isInfoEnabled: () => false },
  ...{ isWarnEnabled: () => false, isErrorEnabled: () => false, isFatalEnabled: () => false },
  ...{ trace: silent, debug: silent, info: silent, warn: silent, error: silent, fatal: silent },
};

export async function mutate(): Promise<Mutated> {
  await dropMutators();
  const files = mutatedFiles().map((name) => ({
    name,
    mutate: true,
    content: readFileSync(join(root, name), "utf8"),
  }));
  const instrumenter = new Instrumenter(logger);
  const { files: instrumented, mutants } = await instrumenter.instrument(files, {
    excludedMutations: [],
    ignorers: [textsForPeople],
    plugins: null,
  });
  const texts = new Map(files.map(({ name, content }) => [name, content.split("\n")]));
  const times = new Map<string, number>();
  const told = mutants
    .filter(({ statusReason }) => statusReason === undefined)
    .map(({ id, fileName: file, location, mutatorName: mutator, replacement }): Mutant => {
      const { start, end } = location;
      const lines = (texts.get(file) ?? []).slice(start.line, end.line + 1);
      const first = lines[0] ?? "";
      lines.push((lines.pop() ?? "").slice(0, end.column));
      lines.unshift((lines.shift() ?? "").slice(start.column));
      const change = `${brief(first)}: ${brief(lines.join("\n"))} ⇒ ${brief(replacement)}`;
      const nth = (times.get(file + change) ?? 0) + 1;
      times.set(file + change, nth);
      const key = `${file}: ${change}${nth === 1 ? "" : ` (${nth})`}`;
      return { id, file, line: start.line + 1, mutator, change, key };
    });
  return { sources: new Map(instrumented.map(({ name, content }) => [name, content])), mutants: told };
}

/** In one line, with its middle left out where it is long. */
function brief(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= 110 ? line : `${line.slice(0, 70)} … ${line.slice(-35)}`;
}
