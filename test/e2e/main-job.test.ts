// @module-tag long
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { exitCodes } from "../../tools/demo/command-line.ts";
import { eventually } from "../support/patience.ts";
import { ProcessTree } from "../support/process-tree.ts";

const program = fileURLToPath(new URL("../../tools/demo/main.ts", import.meta.url));

/** The demonstration stretches its plan up to five times, and its set-up takes as much longer as the machine is slower. */
const timeout = 900_000;
/** Where a machine that slows down in mid-play spoils a plan, the next one is stretched. */
const mostAttempts = 3;

interface Demonstration {
  readonly child: ChildProcess;
  readonly tree: ProcessTree;
  /** Where it has its temporary folders. */
  readonly folder: string;
  output(): string;
  readonly exitCode: Promise<number | null>;
}

const started: Demonstration[] = [];

/** Starts it as `npm start` does, in a process group of its own, so that nothing outlives a test that fails. */
function demonstrate(args: readonly string[] = [], variables: NodeJS.ProcessEnv = {}): Demonstration {
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
  const demonstration = { child, tree, folder, output: () => output, exitCode };
  started.push(demonstration);
  return demonstration;
}

async function until(demonstration: Demonstration, text: string): Promise<void> {
  while (!demonstration.output().includes(text)) {
    const { child } = demonstration;
    if (child.exitCode !== null || child.stdout === null)
      throw new Error(`ended:\n${demonstration.output()}`);
    await once(child.stdout, "data");
  }
}

/** Neither a process nor a folder. The guards of processes end when they have seen the end of what they guard. */
async function expectNothingLeft({ tree, folder }: Demonstration): Promise<void> {
  await eventually(() => expect(tree.survivors()).toEqual([]), 100);
  // Caches that Node and the loader of TypeScript keep for the next run.
  expect(readdirSync(folder).filter((name) => !/^(tsx-|node-compile-cache$)/.test(name))).toEqual([]);
}

/** Plays it to its end, and again with more time where the machine was too slow: that is no failure. */
async function playAll(): Promise<Demonstration> {
  for (let attempt = 1; ; attempt++) {
    const stretch = attempt === 1 ? [] : ["--stretch", String(3 * attempt)];
    const demonstration = demonstrate(["--all", ...stretch]);
    const looks = setInterval(() => demonstration.tree.look(), 2_000);
    const code = await demonstration.exitCode;
    clearInterval(looks);
    await expectNothingLeft(demonstration);
    if (code !== exitCodes.tooSlow || attempt === mostAttempts) return demonstration;
  }
}

describe("npm start", () => {
  afterEach(() => {
    for (const { child, folder } of started.splice(0)) {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // It has ended, and all of its instances with it.
      }
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("ends by itself with every check, and prints plain text into a pipe", { timeout }, async () => {
    const demonstration = await playAll();
    const output = demonstration.output();

    expect(output).toMatch(/\n\d+ checks hold\.\n$/);
    expect(await demonstration.exitCode).toBe(exitCodes.holds);
    expect(output).not.toContain("\u001b");
    for (const step of ["Measuring", "Synthesizing", "Bundling", "Starting DynamoDB", "Starting the app"]) {
      expect(output).toMatch(new RegExp(`✓ ${step}.* \\d+\\.\\d s`));
    }
    for (const event of ["KILLED", "TAKEOVER", "FROZEN", "WOKEN", "fenced off", "has had its run", "parks"]) {
      expect(output).toContain(event);
    }
    for (const event of ["computed", "the old value", "put back", "worker lost", "REFUSED", "the cleaner"]) {
      expect(output).toContain(event);
    }
    for (const system of ["orders", "imports", "stock", "tasks", "tickets"]) {
      expect(output).toMatch(new RegExp(`\n✓ ${system} `));
      expect(output).toMatch(new RegExp(`\n {2}✓ ${system} `));
    }
    expect(demonstration.tree.seen.length).toBeGreaterThanOrEqual(15);
  });

  it("claims no failed check where it had no time for its plan, and says what to do", {
    timeout,
  }, async () => {
    const demonstration = demonstrate(["--stretch", "1"]);
    await until(demonstration, "SILENT");
    // Far longer than a ticket may be silent, and than the leases of the workflow and the job.
    demonstration.child.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    demonstration.child.kill("SIGCONT");

    const exitCode = await demonstration.exitCode;
    expect(exitCode, demonstration.output()).toBe(exitCodes.tooSlow);
    // It is told at the end, or the plan does not come to its end.
    expect(demonstration.output()).toMatch(/the plan (could not be kept|was not over after)/);
    expect(demonstration.output()).toContain("npm start -- --stretch");
    // An incident may say that a call has failed; no check may.
    expect(demonstration.output()).not.toContain("checks FAILED");
  });

  describe("leaves no process and no folder", () => {
    it.each([
      ["Ctrl-C while it loads", "Loading", "SIGINT", 130],
      ["Ctrl-C while it measures the machine", "Measuring", "SIGINT", 130],
      ["Ctrl-C while DynamoDB starts", "Starting DynamoDB ...", "SIGINT", 130],
      ["SIGTERM while the app is synthesized and bundled", "Bundling the functions", "SIGTERM", 143],
      ["a closed terminal while the app starts", "Starting the app ...", "SIGHUP", 129],
      ["Ctrl-C in mid-play, with frozen instances", "SIGSTOP", "SIGINT", 130],
    ] as const)("after %s", { timeout }, async (_, moment, signal, exitCode) => {
      const demonstration = demonstrate();
      await until(demonstration, moment);
      demonstration.tree.look();
      expect(demonstration.output()).not.toContain("\u001b");
      expect(demonstration.output()).not.toContain("✓ ran");
      demonstration.child.kill(signal);
      const looks = setInterval(() => demonstration.tree.look(), 100);
      const code = await demonstration.exitCode;
      clearInterval(looks);

      expect(code).toBe(exitCode);
      expect(demonstration.output()).toMatch(new RegExp(`\nEnded by ${signal}\\.\n$`));
      await expectNothingLeft(demonstration);
    });

    it("after a reader that goes away", { timeout }, async () => {
      const demonstration = demonstrate();
      await until(demonstration, "Bundling the functions");
      demonstration.tree.look();
      demonstration.child.stdout?.destroy();

      expect(await demonstration.exitCode).toBe(141);
      await expectNothingLeft(demonstration);
    });
  });

  it("names an endpoint where no DynamoDB answers, before it does anything else", { timeout }, async () => {
    const demonstration = demonstrate([], { DYNAMODB_ENDPOINT: "http://127.0.0.1:1" });

    expect(await demonstration.exitCode).toBe(exitCodes.failed);
    expect(demonstration.output()).toContain(
      "DYNAMODB_ENDPOINT is http://127.0.0.1:1, and no DynamoDB answers there",
    );
    expect(demonstration.output()).not.toContain("Synthesizing");
    await expectNothingLeft(demonstration);
  });
});
