import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { eventually } from "./patience.ts";
import { ProcessTree } from "./process-tree.ts";

const program = fileURLToPath(new URL("../../tools/demo/main.ts", import.meta.url));

/** The demonstration stretches its plan up to five times, and its set-up takes as much longer as the machine is slower. */
export const demonstrationTimeout = 900_000;

export interface Demonstration {
  readonly child: ChildProcess;
  readonly tree: ProcessTree;
  /** Where it has its temporary folders. */
  readonly folder: string;
  output(): string;
  readonly exitCode: Promise<number | null>;
}

/** Starts it as `npm start` does, in a process group of its own, so that nothing outlives a test that fails. */
export function demonstrate(args: readonly string[] = [], variables: NodeJS.ProcessEnv = {}): Demonstration {
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "leasehold-test-"));
  const child = spawn(
    process.execPath,
    ["--conditions=leasehold-source", "--import", "tsx", program, ...args],
    {
      env: { ...env, ...variables, TMPDIR: folder },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  const collect = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding("utf8").on("data", collect);
  child.stderr.setEncoding("utf8").on("data", collect);
  const exitCode = once(child, "close").then(([code]) => code as number | null);
  const tree = new ProcessTree(child.pid ?? 0);
  onTestFinished(() => {
    try {
      process.kill(-(child.pid ?? 0), "SIGKILL");
    } catch {
      // It has ended, and all of its instances with it.
    }
    rmSync(folder, { recursive: true, force: true });
  });
  return { child, tree, folder, output: () => output, exitCode };
}

/** Neither a process nor a folder. The guards of processes end when they have seen the end of what they guard. */
export async function expectNothingLeft({ tree, folder }: Demonstration): Promise<void> {
  await eventually(() => expect(tree.survivors()).toEqual([]), 100);
  // Caches that Node and the loader of TypeScript keep for the next run.
  expect(readdirSync(folder).filter((name) => !/^(tsx-|node-compile-cache$)/.test(name))).toEqual([]);
}
