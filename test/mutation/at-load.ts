/**
 * Mutants that act while modules are loaded: for each of them the test files that reach its source run with modules
 * loaded anew, up to the first failure. The file that has failed has to pass again without the mutant.
 */
import { join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createVitest, type Vitest } from "vitest/node";
import { root } from "./scope.ts";

/** No mutant has it. */
const nothing = "none";
/** Tests that take so much longer than they do alone are in a loop without end. */
const endlessMs = 120_000;

/** Tells for each mutant, given with its test files, the file whose tests fail with it, or whether they do not end. */
export async function judgeAtLoad(
  mutants: readonly { readonly id: string; readonly files: readonly string[] }[],
  tell: (id: string, file: string | undefined, isEndless: boolean) => void,
): Promise<void> {
  let vitest = await open();
  const failing = async (mutant: string, files: readonly string[]): Promise<string | undefined> => {
    const [project] = vitest.projects;
    if (project === undefined) throw new Error("no project");
    project.provide("mutant", mutant);
    const run = vitest.runTestSpecifications(
      files.map((file) => project.createSpecification(join(root, file))),
    );
    const ended = await Promise.race([run, setTimeout(endlessMs, undefined, { ref: false })]);
    if (ended === undefined) throw new Endless();
    const { testModules } = ended;
    const modules = new Map(testModules.map((module) => [relative(root, module.moduleId), module]));
    // It also gives the modules of earlier runs, as these have ended.
    for (const file of files) {
      const module = modules.get(file);
      if (module === undefined) throw new Error(`${file} was not run`);
      if (!module.ok()) return file;
    }
    return undefined;
  };
  const unfit = new Set<string>();
  const judge = async (id: string, files: readonly string[]): Promise<string | undefined> => {
    const by = await failing(
      id,
      files.filter((file) => !unfit.has(file)),
    );
    if (by === undefined || (await failing(nothing, [by])) === undefined) return by;
    console.log(`${by} fails without mutant ${id}, too: it judges nothing more`);
    unfit.add(by);
    return await judge(id, files);
  };
  for (const { id, files } of mutants) {
    try {
      tell(id, await judge(id, files), false);
    } catch (error) {
      if (!(error instanceof Endless)) throw error;
      tell(id, files[0], true);
      // Its worker does not come back.
      void vitest.close();
      vitest = await open();
    }
  }
  await vitest.close();
}

class Endless extends Error {}

function open(): Promise<Vitest> {
  const config = join(root, "test/mutation/vitest.config.ts");
  return createVitest("test", { config, watch: false, bail: 1, tagsFilter: ["!long"] });
}
