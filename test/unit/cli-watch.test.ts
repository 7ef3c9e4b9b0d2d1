import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeaseStore } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { LeaseServiceError } from "@leasehold/client/internal";
import { describe, expect, it } from "vitest";
import { Interruption } from "../../packages/cli/src/interruption.ts";
import type { Called, CallOptions } from "../support/command-line.ts";
import { changedStore, type LockTable, lockTable } from "../support/lock-table.ts";

/** Begins to watch: resolves when the first look has been sent, and gives how to end it. */
async function watching(
  table: LockTable,
  args: readonly string[],
  { store = table.store, ...options }: CallOptions = {},
): Promise<{ end(): Promise<Called> }> {
  const ending = new AbortController();
  const looked = Promise.withResolvers<void>();
  const observed: LeaseStore = {
    ...changedStore(table.store, {}),
    scan: async (...request) => {
      setImmediate(looked.resolve);
      return await store.scan(...request);
    },
  };
  const called = table.call(["watch", ...args], { ...options, store: observed, signal: ending.signal });
  await looked.promise;
  return {
    async end() {
      await table.clock.advance(2_000);
      ending.abort(new Interruption("SIGINT"));
      return await called;
    },
  };
}

describe("leasehold watch", () => {
  it("prints a line for each thing that happens", async () => {
    const table = lockTable();
    const { clock, holder } = table;
    const worker = holder("ip-10-0-9-4:3310");
    await worker.acquire("nightly-report", { leaseDurationMs: 10_000 });
    const watch = await watching(table, []);
    await clock.advance(2_000);
    const lease = await holder("lambda:close-orders").acquire("close-orders");
    await clock.advance(2_900);
    await lease.release();
    await clock.advance(11_000);
    await holder("ip-10-0-4-2:99").acquire("nightly-report", { leaseDurationMs: 60_000 });
    await clock.advance(2_000);
    const operator = new LeaseOperator(worker, { by: "alice" });
    const { token = "" } = (await worker.inspect("nightly-report")) ?? {};
    await operator.stop("nightly-report", { token, reason: "INC-4411\u001b[2J" });
    await clock.advance(2_000);
    await operator.break("nightly-report", { token, reason: "INC-4411" });
    await operator.pause("price-feed", { forMs: 60_000, reason: "vendor down" });
    const { stdout, stderr } = await watch.end();
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      03:00:02  acquired   close-orders  lambda:close-orders  fence …402001
      03:00:04  released   close-orders  held 3s by lambda:close-orders
      03:00:12  EXPIRED    nightly-report  ip-10-0-9-4:3310, held 12s
      03:00:15  takenOver  nightly-report  ip-10-0-4-2:99 from ip-10-0-9-4:3310
      03:00:15  acquired   nightly-report  ip-10-0-4-2:99  fence …400002
      03:00:18  stopping   nightly-report  ip-10-0-4-2:99: "INC-4411\\u001b[2J"
      03:00:19  broken     nightly-report  held 4s by ip-10-0-4-2:99
      03:00:19  paused     price-feed  paused by alice: "vendor down"
      "
    `);
    expect(stderr).toContain("watching table leases");
  });

  it("gives other programs a line of JSON for each event", async () => {
    const table = lockTable();
    const watch = await watching(table, ["--ndjson"]);
    await table.clock.advance(1_000);
    const lease = await table.holder("worker").acquire("import");
    await table.clock.advance(2_000);
    await lease.release();
    const { stdout } = await watch.end();
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events).toMatchObject([
      { event: "acquired", key: "import", owner: "worker", fencingToken: expect.any(Number) },
      { event: "released", key: "import", owner: "worker", heldForMs: 2_000 },
    ]);
    expect(stdout).not.toContain("00000001-530a");
  });

  it("runs a command for each event, and goes on when it fails", async () => {
    const folder = await mkdtemp(join(tmpdir(), "leasehold-watch-"));
    const file = join(folder, "events");
    const table = lockTable();
    const script = `echo "$LEASEHOLD_EVENT $LEASEHOLD_KEY $LEASEHOLD_OWNER" >> ${file}; exit 3`;
    const watch = await watching(table, ["--exec", script], { env: { PATH: process.env.PATH } });
    await table.clock.advance(1_000);
    await table.holder("worker").acquire("import $(touch x)");
    await table.clock.advance(2_000);
    await until(async () => (await readFile(file, "utf8").catch(() => "")) !== "");
    const { stderr } = await watch.end();
    expect(await readFile(file, "utf8")).toBe("acquired import $(touch x) worker\n");
    expect(stderr).toContain("--exec ended with 3");
    await rm(folder, { recursive: true });
  });

  it("goes on when DynamoDB fails for a while, and says so once", async () => {
    const table = lockTable();
    let isFailing = false;
    const store = changedStore(table.store, {
      scan: async (...args) => {
        if (isFailing) throw new LeaseServiceError("LEASE_THROTTLED", "throttled");
        return await table.store.scan(...args);
      },
    });
    const watch = await watching(table, ["-o", "key"], { store });
    await table.clock.advance(1_000);
    isFailing = true;
    await table.clock.advance(6_000);
    isFailing = false;
    await table.holder("worker").acquire("import");
    const { stdout, stderr } = await watch.end();
    expect(stdout).toBe("import\n");
    expect(stderr.match(/throttled; trying again/g)).toHaveLength(1);
  });
});

/** A real process is waited for in real time. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}
