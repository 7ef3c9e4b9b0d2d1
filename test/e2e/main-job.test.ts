import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

const program = fileURLToPath(new URL("../../demo/main.ts", import.meta.url));
/** The demonstration ends itself after 120 s. */
const timeout = 140_000;

interface Demonstration {
  readonly child: ChildProcess;
  output(): string;
  readonly exitCode: Promise<number | null>;
}

const started: Demonstration[] = [];

/** Starts it as `npm start` does, in a process group of its own, so that nothing outlives a test that fails. */
function demonstrate(): Demonstration {
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env;
  const child = spawn(process.execPath, ["--conditions=leasehold-source", "--import", "tsx", program], {
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding("utf8").on("data", collect);
  child.stderr.setEncoding("utf8").on("data", collect);
  const exitCode = once(child, "close").then(([code]) => code as number | null);
  const demonstration = { child, output: () => output, exitCode };
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

/** The process ids of the instances, of the one that joins later too. */
function instances(demonstration: Demonstration): number[] {
  return [...demonstration.output().matchAll(/\(process (\d+)\)/g)].map(([, pid]) => Number(pid));
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("npm start", () => {
  afterEach(() => {
    for (const { child } of started.splice(0)) {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // It has ended, and all of its instances with it.
      }
    }
  });

  it("ends by itself with an audit that holds, and prints plain text into a pipe", { timeout }, async () => {
    const demonstration = demonstrate();
    const exitCode = await demonstration.exitCode;
    const output = demonstration.output();

    expect(output).toMatch(/\nAll \d+ checks hold\.\n$/);
    expect(exitCode).toBe(0);
    expect(output).not.toContain("\u001b");
    for (const event of ["KILLED", "TAKEOVER", "FROZEN", "WOKEN", "fenced off", "has had its run", "parks"]) {
      expect(output).toContain(event);
    }
    for (const event of ["computed", "the old value", "put back", "worker lost", "refused", "the cleaner"]) {
      expect(output).toContain(event);
    }
    for (const system of ["orders", "imports", "stock", "tasks", "tickets"]) {
      expect(output).toMatch(new RegExp(`\n✓ ${system} `));
    }
    expect(instances(demonstration).length).toBeGreaterThanOrEqual(5);
    expect(instances(demonstration).filter(isRunning)).toEqual([]);
  });

  it("ends its instances at Ctrl-C, a frozen one too", { timeout }, async () => {
    const demonstration = demonstrate();
    await until(demonstration, "SIGSTOP after 2 orders");
    demonstration.child.kill("SIGINT");

    expect(await demonstration.exitCode).toBe(130);
    expect(demonstration.output()).toMatch(/\nEnded by SIGINT\.\n$/);
    expect(instances(demonstration).length).toBeGreaterThanOrEqual(4);
    expect(instances(demonstration).filter(isRunning)).toEqual([]);
  });
});
