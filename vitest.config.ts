import { defineConfig } from "vitest/config";

const conditions = ["leasehold-source"];
const shared = { resolve: { conditions }, ssr: { resolve: { conditions } } };

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: "unit",
          include: ["test/{unit,contract,simulation,infra}/**/*.test.ts"],
        },
      },
      {
        ...shared,
        test: {
          name: "engine",
          include: ["test/{integration,fault,e2e}/**/*.test.ts"],
          globalSetup: "test/support/engine-setup.ts",
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
