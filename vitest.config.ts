import { defineConfig } from "vitest/config";

const conditions = ["leasehold-source"];
const demonstration = "test/e2e/main-job.test.ts";
/** Nothing waits for so long on an idle machine; a busy one that is four times slower may. */
const patience = { testTimeout: 300_000, hookTimeout: 300_000 };

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
          ...patience,
        },
      },
      {
        extends: true,
        test: {
          name: "engine",
          include: ["test/{integration,fault,e2e}/**/*.test.ts"],
          exclude: [demonstration],
          globalSetup: "test/support/engine-setup.ts",
          ...patience,
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
