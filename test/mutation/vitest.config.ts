/** Runs the tests on the instrumented sources, in one worker, with the runner that switches mutants on. */
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import base from "../../vitest.config.ts";
import { type Plan, planFile, sourcesFile } from "./plan.ts";
import { root } from "./scope.ts";

const sources = new Map<string, string>(JSON.parse(readFileSync(sourcesFile, "utf8")));
const plan: Plan = JSON.parse(readFileSync(planFile, "utf8"));

class AsPlanned extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => plan.files.indexOf(relative(root, moduleId));
    return files.toSorted((one, other) => place(one) - place(other));
  }
}

export default defineConfig({
  root,
  resolve: base.resolve ?? {},
  ssr: base.ssr ?? {},
  environments: base.environments ?? {},
  plugins: [
    {
      name: "mutants",
      enforce: "pre",
      load: (id) => sources.get(relative(root, id.replace(/\?.*$/, ""))),
    },
  ],
  test: {
    tags: [{ name: "long" }],
    include: [...plan.files],
    runner: join(root, "test/mutation/runner.ts"),
    sequence: { sequencer: AsPlanned },
    reporters: [{}],
    pool: "threads",
    maxWorkers: 1,
    isolate: false,
    // It knows a module by the text on the disk: a module that is cached would have the mutants of an earlier run.
    fsModuleCache: false,
    unstubEnvs: true,
    unstubGlobals: true,
    restoreMocks: true,
    dangerouslyIgnoreUnhandledErrors: true,
    testTimeout: plan.judging?.testTimeoutMs ?? 60_000,
    env: { CDK_VALIDATION: "false" },
  },
});
