import { defineConfig } from "vitest/config";

const conditions = ["leasehold-source"];
const demonstration = "test/e2e/main-job.test.ts";

export default defineConfig({
  // Packages are tested from their sources, without a build.
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    // Most tests of processes wait for them: where there are two processors, one worker would leave both idle.
    maxWorkers: "100%",
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/{unit,contract,simulation,infra}/**/*.test.ts"],
          // The first synthesis of a process loads the whole of aws-cdk-lib.
          testTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          name: "engine",
          include: ["test/{integration,fault,e2e}/**/*.test.ts"],
          exclude: [demonstration],
          globalSetup: "test/support/engine-setup.ts",
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "demonstration",
          include: [demonstration],
          // It plays five systems against the clock, and has the machine to itself.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
