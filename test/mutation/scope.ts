/** What is mutated, by which tests it is judged, and where everything of a run lies. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** What earlier runs have seen. */
export const workFolder = join(root, "node_modules/.cache/leasehold-mutation");

/** The protocol's words first, then what reads and writes with them, then the primitives. */
const mutated = [
  "packages/client/src/statements/*.ts",
  "packages/client/src/base/{record,item-values,handle,clock,service-clock,retry,timed-call,priority-queue}.ts",
  "packages/client/src/core/*.ts",
  "packages/client/src/admin/lease-admin.ts",
  "packages/client/src/primitives/*/*.ts",
  "packages/jobs/src/{runs,tasks}/*.ts",
];

/** They hold no protocol: what an option may be, what an error says, what an event and an attribute are called. */
const leftOut = /\/(options|errors|events|schema|index)\.ts$/;

/** The sources that are mutated, relative to the root. */
export function mutatedFiles(): string[] {
  return mutated
    .flatMap((pattern) => globSync(pattern, { cwd: root }).sort())
    .filter((file) => !leftOut.test(file));
}

/** All code that users and the app run, relative to the root; without what is generated and what is built. */
const allCode = ["packages/*/{src,wake,history}/**/*.ts", "functions/**/*.ts", "infra/**/*.ts"];
const generated = /-bundle\.ts$/;

/** How many of the lines of all code are in the sources that are mutated. */
export function shareOfCode(): { readonly mutated: number; readonly all: number } {
  const all = allCode
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => !generated.test(file) && !file.includes("node_modules"));
  return { mutated: linesOf(mutatedFiles()), all: linesOf(all) };
}

function linesOf(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + readFileSync(join(root, file), "utf8").split("\n").length - 1, 0);
}

/** They load the packages anew, or are about other parts than the protocol. */
const ofOtherParts = /\/(clones|conformance|cron|light-|old-sdk)[^/]*$/;

/** The tests that have to see a mutant: without an engine, short, and a few worlds of each simulation. */
export function testFiles(): string[] {
  return globSync(["test/{contract,client,jobs}/*.test.ts", "test/mutation/worlds.test.ts"], { cwd: root })
    .filter((file) => !ofOtherParts.test(file))
    .sort();
}
