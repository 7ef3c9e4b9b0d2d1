// The full screen in a real terminal: what it shows, what keys do, and that the terminal is as before, however it ends.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LeaseClient } from "@leasehold/client";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { bundleCli, cliEnvironment } from "../support/cli-process.ts";
import { eventually } from "../support/patience.ts";
import { makeTable, type TestTable } from "../support/table.ts";
import { hasTmux, TmuxTerminal } from "../support/tmux.ts";

const engine = inject("engine");
const isInstalled = await hasTmux();
if (!isInstalled)
  console.warn("tmux is not installed: the full screen is not tested. Debian: apt-get install tmux");

it.runIf(process.env.CI === "1")("finds tmux where nothing may be left out", { tags: ["long"] }, () => {
  expect(isInstalled).toBe(true);
});

describe.runIf(isInstalled)("leasehold top", { tags: ["long"] }, () => {
  let folder: string;
  let main: string;
  let table: TestTable;
  let client: LeaseClient;
  let terminal: TmuxTerminal;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "leasehold-top-"));
    main = await bundleCli(folder);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    table = await makeTable(engine);
    client = table.client({ owner: "ip-10-0-3-17:812" });
    const env = { ...cliEnvironment(engine, table.tableName), LEASEHOLD_OWNER: "alice@laptop" };
    terminal = await TmuxTerminal.open({ columns: 100, rows: 20 }, env);
  });
  afterEach(async () => {
    await terminal[Symbol.asyncDispose]();
    await client.close();
    table.close();
  });

  async function shows(...texts: readonly string[]): Promise<string> {
    return await eventually(async () => {
      const screen = await terminal.screen();
      for (const text of texts) expect(screen).toContain(text);
      return screen;
    }, 100);
  }

  async function start(...args: readonly string[]): Promise<void> {
    const command = [process.execPath, main, "top", "--every", "500ms", ...args];
    await terminal.type(`${command.join(" ")}; echo "exit $?"`);
  }

  /** The shell is back, its own screen and its cursor too, and it echoes what is typed. */
  async function isAsBefore(code: number): Promise<void> {
    await shows(`exit ${code}`);
    expect(await terminal.mode()).toEqual({ isAlternate: false, hasCursor: true });
    await terminal.type("echo still $((40 + 2))");
    await shows("echo still $((40 + 2))", "still 42");
  }

  it("shows keys and their bars, follows what happens, and quits with q", async () => {
    await client.acquire("import/orders", { heartbeat: true });
    await table.deadLease("nightly-report");
    await start();
    const screen = await shows("import/orders", "held 1", "expired 1", "EXPIRED", "█");
    expect(screen).toContain("leasehold top · table leases-");
    expect(screen).toContain("RCU/s");
    expect(await terminal.mode()).toEqual({ isAlternate: true, hasCursor: false });
    const lease = await client.acquire("label-printer");
    await shows("label-printer", "held 2");
    await lease.release();
    await eventually(async () => expect(await terminal.screen()).not.toContain("label-printer"), 100);
    await terminal.press("q");
    await isAsBefore(0);
  });

  it("chooses, filters, sorts, and shows everything about a key", async () => {
    for (const key of ["alpha", "beta", "gamma"]) await client.acquire(key, { heartbeat: true });
    await start();
    await shows("▸ alpha", "gamma");
    await terminal.press("Down");
    await shows("▸ beta");
    await terminal.press("s");
    await shows("sort: age");
    await terminal.press("/");
    await terminal.press("g", "a", "m");
    await eventually(async () => expect(await terminal.screen()).not.toContain("beta"), 100);
    await terminal.press("Enter");
    await terminal.press("Enter");
    await shows("gamma  held", "fencing", "What you can do");
    await terminal.press("q");
    await shows("▸ gamma", "/gam");
    await terminal.press("C-c");
    await isAsBefore(0);
  });

  it("asks before it breaks, and writes nothing with --read-only", async () => {
    await client.acquire("import", { heartbeat: true });
    await start("--read-only");
    await shows("▸ import", "read-only");
    await terminal.press("X");
    await shows("--read-only is on: nothing done");
    await terminal.press("q");
    await shows("exit 0");
    await terminal.type("clear");
    await start();
    await shows("▸ import");
    await terminal.press("X");
    await shows("Type the key to break it:");
    await terminal.type("no");
    await shows("nothing done", "Enter goes back");
    await terminal.press("Enter");
    await shows("▸ import");
    expect(await client.inspect("import")).toBeDefined();
    await terminal.press("X");
    await shows("Type the key to break it:");
    await terminal.type("import");
    await shows("Reason");
    await terminal.type("INC-4411");
    await shows("broken. The key is free.");
    await terminal.press("Enter");
    await shows("nothing is held");
    await terminal.press("q");
    await isAsBefore(0);
    expect(await client.inspect("import")).toBeUndefined();
  });

  it("fits into 40 columns, and follows the size of the terminal", async () => {
    await client.acquire("a-key-that-is-longer-than-the-whole-terminal-is-wide", { heartbeat: true });
    await terminal.resize(40, 12);
    await start();
    await shows("▸ a-key-that");
    const narrow = await terminal.screen();
    expect(narrow.split("\n").filter((line) => line.length > 40)).toEqual([]);
    await terminal.resize(140, 20);
    await shows("a-key-that-is-longer", "lease left", "RENEWED");
    await terminal.press("q");
    await isAsBefore(0);
  });

  it("shows hostile keys as text", async () => {
    await client.acquire("evil\u001b[?1049l\u001b[2J\u0007", { heartbeat: true });
    await start();
    await shows("evil\\x1b[?1049l\\x1b[2J\\x07");
    expect((await terminal.mode()).isAlternate).toBe(true);
    await terminal.press("q");
    await isAsBefore(0);
  });

  it.each([
    ["TERM", 143],
    ["INT", 130],
    ["HUP", 129],
  ])("gives the terminal back at SIG%s", async (signal, code) => {
    await client.acquire("import", { heartbeat: true });
    await start();
    await shows("▸ import");
    // The child of the terminal's own shell, by the line that it was started with.
    await terminal.signal(`${main} top`, signal);
    await isAsBefore(code);
  });

  it("gives the terminal back when the program fails", async () => {
    const file = join(folder, "failing.ts");
    const source = fileURLToPath(new URL("../../packages/cli/src/terminal/", import.meta.url));
    await writeFile(
      file,
      `import { Screen } from ${JSON.stringify(`${source}screen.ts`)};
       import { Terminal } from ${JSON.stringify(`${source}terminal.ts`)};
       const { stdin, stdout, stderr, env } = process;
       const screen = new Screen(new Terminal({ stdin, stdout, stderr, env }), () => {}, () => {});
       screen.open();
       screen.draw(["about to fail"]);
       setTimeout(() => { throw new Error("as planned"); }, 1_000);`,
    );
    const outfile = join(folder, "failing.mjs");
    await build({ entryPoints: [file], outfile, bundle: true, platform: "node", format: "esm" });
    await terminal.type(`${process.execPath} ${outfile}; echo "exit $?"`);
    await shows("about to fail");
    await isAsBefore(1);
    await shows("as planned");
  });
});
