// What the blocks of the pages are as programs: one file each, as a reader would paste it into an empty project.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Block, blocksOf, pages } from "./blocks.ts";

/** A block with those that continue it, as one file. */
export interface Program {
  /** Where its first block is: `README.md:7`. */
  readonly place: string;
  /** `README-7.ts` */
  readonly file: string;
  readonly code: string;
  /** How it is run, and ends; `none` where it is compiled alone. */
  readonly run: "to its end" | "until SIGTERM" | "none" | { readonly event: unknown };
}

const endings: Readonly<Record<string, string>> = { ts: "ts", js: "js" };

/** The programs of a page. Throws where a block cannot be one. */
export function programsOf(page: string, blocks: readonly Block[] = blocksOf(page)): Program[] {
  const programs: Program[] = [];
  const own = blocks.filter(({ language }) => language in endings);
  for (const block of own) {
    const { line, language, code, directive } = block;
    const place = `${page}:${line}`;
    if (directive?.kind === "text-only") continue;
    if (directive?.kind === "continues") {
      const last = programs.pop();
      if (last === undefined) throw new Error(`${place} continues a block that is not there`);
      programs.push({ ...last, code: `${last.code}\n${code}` });
      continue;
    }
    if (directive === undefined && /^export (const|async function|function) handler\b/m.test(code)) {
      throw new Error(`${place} exports a handler: say above it <!-- example: handler with {the event} -->`);
    }
    const stem = `${page.replace(/\.md$/, "").replaceAll(/\W/g, "-")}-${line}`;
    const ending = `${isTest(code) ? "test." : ""}${endings[language]}`;
    programs.push({ place, file: `${stem}.${ending}`, code, run: runOf(block) });
  }
  return programs;
}

function runOf({ directive }: Block): Program["run"] {
  switch (directive?.kind) {
    case "types-only":
      return "none";
    case "until SIGTERM":
      return "until SIGTERM";
    case "handler":
      return { event: directive.event };
    default:
      return "to its end";
  }
}

/** Whether Vitest runs it, and not Node. */
export function isTest(code: string): boolean {
  return /from "vitest"/.test(code);
}

/** The packages that programs import, without Leasehold's own and those of Node. */
export function importedPackages(programs: readonly Program[]): readonly string[] {
  const specifiers = programs.flatMap(({ code }) => [...code.matchAll(/(?:from|import) "([^".][^"]*)"/g)]);
  const names = specifiers.map(([, name = ""]) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
  return [...new Set(names)].filter((name) => !/^(node:|@leasehold\/)/.test(name)).sort();
}

/** The programs of all pages. */
export function allPrograms(): Program[] {
  return pages.flatMap((page) => programsOf(page));
}

/** Writes programs into a folder, each into its file. */
export function writePrograms(folder: string, programs: readonly Program[]): void {
  for (const { file, code } of programs) writeFileSync(join(folder, file), code);
}
