/** Runs the contracts in a process of its own, and tells the parent of each as it ends. Ends with its parent. */
import { fileURLToPath } from "node:url";
import { createVitest, type Reporter, type TestModule } from "vitest/node";
import { type Check, seconds } from "../check.ts";
import type { ContractName } from "./contract.suite.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const conditions = ["leasehold-source"];
const mostDetails = 5;
const contracts: Readonly<Record<ContractName, true>> = {
  ...{ lease: true, store: true, election: true, "fair lock": true, group: true, semaphore: true },
  ...{ "read-write lock": true, "single flight": true, "job runs": true, tasks: true, "serial tasks": true },
};

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
    name: `contract ${module.project.name}`,
    promised: "every test holds",
    measured: `${passed.length} of ${tests.length}, ${seconds(module.diagnostic().duration)}`,
    holds: tests.length > 0 && problems.length === 0 && passed.length === tests.length,
    details: [...problems.slice(0, mostDetails), ...(dropped > 0 ? [`… and ${dropped} more`] : [])],
  };
}

process.on("disconnect", () => process.exit(1));
const vitest = await createVitest(
  { root, config: false, watch: false, reporters: [reporter], maxWorkers: 4 },
  {
    test: {
      // A project for each contract: each is a file of its own then, and they run side by side.
      projects: Object.keys(contracts).map((contract) => ({
        resolve: { conditions },
        ssr: { resolve: { conditions } },
        test: {
          name: contract,
          include: ["test/acceptance/contracts/contract.suite.ts"],
          provide: { contract: contract as ContractName },
          pool: "threads",
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      })),
    },
  },
);
await vitest.start();
await vitest.close();
await Promise.all(told);
process.exit(0);
