/** Runs the contracts in a process of its own, and tells the parent of each as it ends. Ends with its parent. */
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { type CliOptions, createVitest, type Reporter, type TestModule } from "vitest/node";
import { type Check, seconds } from "../check.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const conditions = ["leasehold-source"];
const mostDetails = 5;

const told: Promise<void>[] = [];
const reporter: Reporter = {
  onTestModuleEnd: (module) => {
    told.push(new Promise((resolve) => process.send?.(checkOf(module), () => resolve())));
  },
};

function checkOf(module: TestModule): Check {
  const tests = [...module.children.allTests()];
  const failed = [...module.children.allTests("failed")];
  const passed = [...module.children.allTests("passed")];
  const problems = [
    ...module.errors().map(({ message }) => message),
    ...failed.map((test) => `${test.fullName}: ${test.result().errors?.[0]?.message ?? "failed"}`),
  ];
  const dropped = problems.length - mostDetails;
  return {
    name: `contract ${basename(module.moduleId).split(".")[0]}`,
    promised: "every test holds",
    measured: `${passed.length} of ${tests.length}, ${seconds(module.diagnostic().duration)}`,
    holds: tests.length > 0 && problems.length === 0 && passed.length === tests.length,
    details: [...problems.slice(0, mostDetails), ...(dropped > 0 ? [`… and ${dropped} more`] : [])],
  };
}

process.on("disconnect", () => process.exit(1));
const options: CliOptions = {
  root,
  config: false,
  watch: false,
  include: ["test/acceptance/contracts/*.suite.ts"],
  reporters: [reporter],
  pool: "threads",
  maxWorkers: 4,
  testTimeout: 120_000,
  hookTimeout: 120_000,
};
const vitest = await createVitest(options, {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
});
await vitest.start();
await vitest.close();
await Promise.all(told);
process.exit(0);
