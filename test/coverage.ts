/** Runs the tests in memory, and shows how much of `packages/` they execute. Fails below the thresholds of vitest.config.ts. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "../tools/packaging/pack.ts";

await build();
const vitest = join(import.meta.dirname, "../node_modules/vitest/vitest.mjs");
const args = ["run", "--project=unit", "--project=isolated", "--tags-filter=!long", "--coverage"];
const { status } = spawnSync(process.execPath, [vitest, ...args, ...process.argv.slice(2)], {
  stdio: "inherit",
});
process.exitCode = status ?? 1;
