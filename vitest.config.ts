import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const conditions = ["leasehold-source"];
/** They replace modules, load them again, or look at the process: they share neither with other files. */
const isolated = [
  "test/client/clones.test.ts",
  "test/repository/error-copies.test.ts",
  // What has been left in the same thread reads the environment that they set, and asks their servers.
  "test/client/light-credentials.test.ts",
  "test/client/own-dynamodb-client.test.ts",
  "test/client/old-sdk.test.ts",
];
const onAnEngine = ["test/{integration,fault,e2e}/**/*.test.ts"];
/** For the mutation run alone. */
const apart = "test/mutation/worlds.test.ts";
const demonstration = "test/e2e/demonstration.test.ts";
/** What goes by a store's own requests, repetitions and connections. Contracts and the torture play the rest on it. */
const onTheLightStore =
  "test/fault/{bad-service,closing-processes,hanging,lost-answers,requests,throttling}.test.ts";
/** Nothing waits for so long on an idle machine; a busy one that is four times slower may. */
const patience = { testTimeout: 300_000, hookTimeout: 300_000 };

/** Of the statements, branches, functions and lines of a package, `npm test -- --coverage` has to reach so many percent. */
const reached = (statements: number, branches: number, functions: number, lines: number) => ({
  statements,
  branches,
  functions,
  lines,
});

export default defineConfig({
  // Packages are tested from their sources, without a build.
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    tags: [{ name: "long", description: "What npm test leaves to npm run test:long." }],
    // Tests on an engine mostly wait for it, and for processes: beside them there is time for others.
    maxWorkers: 2 * availableParallelism(),
    // Loading the SDK and the CDK for every file anew takes longer than most tests do.
    isolate: false,
    coverage: {
      provider: "v8",
      include: ["packages/*/src/**/*.ts"],
      reporter: ["text-summary", "json-summary"],
      reportsDirectory: "node_modules/.cache/leasehold-coverage",
      // The engine's package has none: it starts engines. Much of the command line is only tested as a process, too.
      thresholds: {
        "packages/client/src/**": reached(97, 94, 97, 98),
        "packages/jobs/src/**": reached(97, 95, 97, 98),
        "packages/cdk/src/**": reached(99, 97, 99, 99),
        "packages/middy/src/**": reached(92, 91, 90, 94),
        "packages/durable/src/**": reached(93, 85, 96, 97),
        "packages/opentelemetry/src/**": reached(98, 93, 99, 99),
        "packages/cli/src/**": reached(78, 71, 82, 80),
      },
    },
    // What AWS's validator says of every template that is synthesized goes nowhere: the tests that want to know ask it.
    env: { CDK_VALIDATION: "false" },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{test,tools}/**/*.test.ts"],
          exclude: [...isolated, ...onAnEngine, apart],
          globalSetup: "test/support/temporary-folder-setup.ts",
          setupFiles: process.env.LEASEHOLD_KEPT_TEMPLATES ? ["test/support/template-folder.ts"] : [],
          pool: "threads",
          unstubEnvs: true,
          unstubGlobals: true,
          restoreMocks: true,
          ...patience,
        },
      },
      {
        extends: true,
        test: { name: "isolated", include: isolated, isolate: true, ...patience },
      },
      {
        extends: true,
        test: {
          name: "engine",
          include: onAnEngine,
          exclude: [demonstration],
          globalSetup: "test/support/engine-setup.ts",
          ...patience,
        },
      },
      {
        extends: true,
        test: {
          // What those tests of the engine show, once more on the light store.
          name: "light",
          include: [onTheLightStore],
          env: { LEASEHOLD_TEST_STORE: "light" },
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
