/**
 * Mutants that act while modules are loaded: the tests of the files that reach their source run with modules loaded anew,
 * once for each mutant.
 */
import { join } from "node:path";
import { createVitest } from "vitest/node";
import { root } from "./scope.ts";

/** Tells for each mutant, given with its test files, the file whose tests fail with it. */
export async function judgeAtLoad(
  mutants: readonly { readonly id: string; readonly files: readonly string[] }[],
  tell: (id: string, file: string | undefined) => void,
): Promise<void> {
  const config = join(root, "test/mutation/vitest.config.ts");
  const vitest = await createVitest("test", { config, watch: false, bail: 1, tagsFilter: ["!long"] });
  const [project] = vitest.projects;
  if (project === undefined) throw new Error("no project");
  for (const { id, files } of mutants) {
    let by: string | undefined;
    project.provide("mutant", id);
    for (const file of files) {
      const path = join(root, file);
      const { testModules } = await vitest.runTestSpecifications([project.createSpecification(path)]);
      // It also gives the modules of earlier runs, as these have ended.
      const own = testModules.find(({ moduleId }) => moduleId === path);
      if (own === undefined) throw new Error(`${file} was not run`);
      if (own.ok()) continue;
      by = file;
      break;
    }
    tell(id, by);
  }
  await vitest.close();
}
