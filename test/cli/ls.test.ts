import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { LeaseServiceError } from "@leasehold/client/internal";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { TaskSet } from "@leasehold/jobs";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { readCost } from "../../packages/cli/src/view/read-cost.ts";
import { globTest } from "../../packages/cli/src/view/rows.ts";
import { tooLargeError } from "../../packages/cli/src/view/table-snapshot.ts";
import { adminOf } from "../support/admin.ts";
import { type CallOptions, leasehold } from "../support/command-line.ts";
import { changedStore, type LockTable, lockTable, tooWide } from "../support/lock-table.ts";
import { putItem } from "../support/recomposed.ts";
import { farAway } from "../support/wrong-clocks.ts";

/** A table with something of everything. */
async function busyTable(): Promise<LockTable> {
  const table = lockTable();
  const { clock, holder } = table;
  const host = holder("ip-10-0-3-17:812");
  await holder("ip-10-0-9-4:3310").acquire("nightly-report", { leaseDurationMs: 60_000 });
  await clock.advance(33_120_000);
  await new LeaseOperator(host, { by: "alice@laptop" }).pause("price-feed", {
    forMs: 86_400_000,
    reason: "INC-4411, vendor down",
  });
  await (await host.acquire("released")).release();
  await (await host.acquire("invoice", { leaseDurationMs: 600_000, lockAtLeastForMs: 600_000 })).release();
  await host.acquire("label-printer", { leaseDurationMs: 400_000 });
  for (const owner of ["ip-10-0-4-2:99", "lambda:labels"]) {
    holder(owner)
      .acquire("label-printer", { waitMs: 3_600_000, order: fair() })
      .catch(() => undefined);
    await clock.advance(95_000);
  }
  await new ReadWriteLock(host, "catalogue").write();
  const payments = new Semaphore(host, "payment-api", { permits: 5 });
  for (let n = 0; n < 2; n += 1) await payments.acquire();
  const import_ = await holder("sfn:import-2f1c").acquire("import/orders", { leaseDurationMs: 60_000 });
  await holder("bob").acquire("asked", { leaseDurationMs: 60_000 });
  const asked = await host.inspect("asked");
  await adminOf(host).requestRevocation("asked", { token: asked?.token ?? "", reason: "INC-4412" });
  await clock.advance(12_000);
  await import_.renew();
  await clock.advance(4_000);
  const tasks = new TaskSet(host, "orders/today");
  await tasks.add([{ id: "doc-1" }, { id: "doc-2" }]);
  return table;
}

describe("leasehold ls", () => {
  it("shows each key with its state, its holder, its times and what a person wants to know", async () => {
    const { call } = await busyTable();
    const { code, stdout, stderr } = await call(["ls"], { columns: 130 });
    expect(code).toBe(0);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      KEY             STATE     OWNER                   HELD FOR     ENDS IN    FENCE  NOTE
      asked           stopping  bob                          16s         44s  …710001  asked to stop: "INC-4412"
      catalogue       writer    ip-10-0-3-17:812             16s         14s  …710001  0 readers
      import/orders   held      sfn:import-2f1c              16s         56s  …710001  renewed 4s ago
      invoice         closed    ip-10-0-3-17:812          3m 26s      6m 34s  …520001  released early (lockAtLeastFor)
      label-printer   held      ip-10-0-3-17:812          3m 26s      3m 14s  …520001  2 waiting, 1st for 3m 26s
      nightly-report  EXPIRED   ip-10-0-9-4:3310          9h 15m  9h 14m ago  …400001  nobody has wanted it since
      payment-api     2 of 5    semaphore                      —           —        —
      price-feed      PAUSED    paused by alice@laptop    3m 26s     23h 56m  …520001  "INC-4411, vendor down"
      "
    `);
    expect(stderr).toMatchInlineSnapshot(`
      "8 keys, 5 held, 1 expired, 1 paused, 1 closed.  table leases · ? · 14 items read (0.5 RCU, less than $0.000001)
      "
    `);
  });

  it("shows every primitive with --all, and free locks with --tombstones", async () => {
    const { call } = await busyTable();
    const { stdout } = await call(["ls", "--all", "--tombstones"], { columns: 130 });
    const lines = stdout.split("\n").map((line) => line.split(/ {2,}/));
    expect(lines.filter(([key = ""]) => ["orders/today", "released"].includes(key))).toEqual([
      ["orders/today", "0 running", "tasks", "—", "—", "—", "2 waiting, 0 ended"],
      ["released", "free", "—", "—", "—", "released 3m 26s ago by ip-10-0-3-17:812"],
    ]);
  });

  it("leaves out columns where the terminal is narrow, and no line is wider than it", async () => {
    const { call } = await busyTable();
    for (const columns of [40, 60, 80, 100]) {
      const { stdout } = await call(["ls", "--all"], { columns });
      expect(tooWide(stdout, columns)).toEqual([]);
    }
    const { stdout } = await call(["ls"], { columns: 40 });
    expect(stdout.split("\n").slice(0, 2)).toEqual([
      "KEY             STATE        ENDS IN",
      "asked           stopping         44s",
    ]);
  });

  it.each([72, 80, 100, 120])(
    "names keys and owners in full before it shows what is less needed: %i",
    async (columns) => {
      const { call, clock, holder } = lockTable();
      const [key, owner] = ["orders/2026-11/import-of-wholesale", "ip-10-0-3-17.eu-central-1:81234"];
      const lease = await holder(owner).acquire(key, { leaseDurationMs: 60_000 });
      await clock.advance(20_000);
      await lease.renew();
      const { stdout } = await call(["ls"], { columns });
      expect(tooWide(stdout, columns)).toEqual([]);
      // All that is left beside the state and the end is theirs.
      const room = columns < 80 ? 22 : 30;
      expect(stdout).toContain(key.slice(0, room));
      expect(stdout).toContain(owner.slice(0, room));
      expect(stdout).toContain("ENDS IN");
      expect(stdout.includes("FENCE")).toBe(columns >= 120);
    },
  );

  it("gives keys as they are with -0, and says where lines do not", async () => {
    const { call, holder } = lockTable();
    const key = "a\u001b[2J\nb\u200bc";
    await holder("worker").acquire(key);
    await holder("worker").acquire("plain");
    for (const args of [["-0"], ["-0", "-o", "key"], ["--null"]]) {
      // A pipe, not a terminal.
      const { code, stdout } = await call(["ls", ...args], { columns: undefined });
      expect([code, stdout]).toEqual([0, `${key}\0plain\0`]);
    }
    const lines = await call(["ls", "-o", "key"]);
    expect(lines.stdout).toBe("a\\x1b[2J\\x0ab\\u200bc\nplain\n");
    expect(lines.stderr).toBe("leasehold: 1 key is not written as in the table: -0 gives them as they are\n");
    expect((await call(["ls", "-0", "--json"], { columns: undefined })).code).toBe(64);
    // A terminal would act on it.
    expect((await call(["ls", "-0"])).code).toBe(64);
  });

  it("looks at a large table no more often than --max-rcu allows", async () => {
    const { store, clock, holder } = lockTable();
    for (let n = 0; n < 100; n += 1) {
      await holder("worker").acquire(`lock-${n}`, { leaseDurationMs: 600_000, data: "x".repeat(2_000) });
    }
    await leasehold(["ls", "--help"]);
    const looks = async (...args: readonly string[]): Promise<number> => {
      const ending = new AbortController();
      const scan = vi.spyOn(store, "scan");
      const called = leasehold(["ls", "--watch", ...args], { store, clock, signal: ending.signal });
      for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
      ending.abort(new Interruption("SIGINT"));
      await called;
      const { length } = scan.mock.calls;
      scan.mockRestore();
      return length;
    };
    // 27 units each: twelve looks in a minute take the 5 units a second.
    expect(await looks()).toBeLessThanOrEqual(13);
    expect(await looks("--every", "2s")).toBeLessThanOrEqual(13);
    expect(await looks("--max-rcu", "1000")).toBeGreaterThanOrEqual(30);
  });

  it.each([
    [["--expired"], ["nightly-report"]],
    [
      ["--owner", "ip-10-0-?-*"],
      ["label-printer", "nightly-report", "payment-api", "catalogue", "invoice"],
    ],
    [
      ["--older", "3m"],
      ["invoice", "label-printer", "nightly-report", "price-feed"],
    ],
    [
      ["--sort", "ends", "--limit", "2"],
      ["nightly-report", "catalogue"],
    ],
    [
      ["--sort", "age", "--limit", "2"],
      ["nightly-report", "invoice"],
    ],
    [["imp"], ["import/orders"]],
    [["--", "imp"], ["import/orders"]],
  ])("selects by %j", async (args, keys) => {
    const { call } = await busyTable();
    const { stdout } = await call(["ls", "-o", "key", ...args]);
    const isOrdered = args.includes("--sort");
    const found = stdout.trim().split("\n");
    expect(isOrdered ? found : found.sort()).toEqual(isOrdered ? keys : [...keys].sort());
  });

  it("gives other programs the fields of a lease's record, its state and its times", async () => {
    const { call } = await busyTable();
    const { stdout } = await call(["ls", "import", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject([
      {
        key: "import/orders",
        sortKey: "lease",
        state: "held",
        owner: "sfn:import-2f1c",
        token: expect.stringMatching(/^\d{8}-/),
        heldForMs: 16_000,
        remainingMs: 56_000,
        waiting: 0,
      },
    ]);
    const semaphore = JSON.parse((await call(["ls", "payment", "--json"])).stdout);
    expect(semaphore).toMatchObject([
      { key: "payment-api", primitive: "semaphore", permits: { taken: 2, of: 5 }, leases: [{}, {}] },
    ]);
  });

  it("gives absolute times and full numbers in wide tables", async () => {
    const { call } = await busyTable();
    const { stdout } = await call(["ls", "import", "-o", "wide"]);
    expect(stdout).toContain("2026-11-22 12:15:10");
    expect(stdout).toContain("1795349710001");
    expect((await call(["ls", "import", "--utc"], { columns: 130 })).stdout).toContain("2026-11-22 12:15:10");
  });

  it("says that an empty table has nothing, and exits with 1 only with --fail-if-empty", async () => {
    const { call } = lockTable();
    expect(await call(["ls"])).toEqual({
      code: 0,
      stdout: "",
      stderr: "0 keys.  table leases · ? · 0 items read (0.5 RCU, less than $0.000001)\n",
    });
    expect((await call(["ls", "--fail-if-empty", "-q"])).code).toBe(1);
    expect((await call(["ls", "--json"])).stdout).toBe("[]\n");
  });

  it("names an item that is no lease, and shows the others", async () => {
    const { store, call, holder } = lockTable();
    await holder("alice").acquire("good");
    putItem(store, { pk: "bad\u001b[2J", sk: "lease", token: "t", owner: "o", fence: "x" });
    putItem(store, { pk: "user#1", sk: "profile", name: "somebody else's" });
    const { code, stdout, stderr } = await call(["ls", "-o", "key"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "good\n" });
    expect(stderr).toContain("bad\\x1b[2J: ");
  });

  it("stops at 100,000 items, tells what was read, and goes on with --scan", async () => {
    const { call, store, clock } = lockTable();
    const items = Array.from({ length: 500 }, (_, n) => ({ pk: `k${n}`, sk: "done#1" }));
    let pages = 0;
    const large = changedStore(store, {
      scan: async () => {
        pages += 1;
        return pages < 300 ? { items, next: { pk: "k", sk: `${pages}` } } : { items };
      },
    });
    const refused = await call(["ls"], { store: large });
    expect(refused).toMatchObject({ code: 64, stdout: "" });
    expect(refused.stderr).toMatch(
      /^leasehold: stopped after 100,000 items read \(\d+\.?\d* RCU, \$0\.0000\d+\)/,
    );
    expect(refused.stderr).toContain("--scan reads all");
    expect(pages).toBe(200);
    expect((await call(["ls", "--scan"], { store: large, clock })).code).toBe(0);
    expect(pages).toBe(300);
  });

  /** `ls --watch` with further words on a table with one lock of alice's; `end` interrupts it. */
  async function watching(words: string, options: CallOptions = {}) {
    const { store, clock, holder } = lockTable();
    const lease = await holder("alice").acquire("import", { leaseDurationMs: 60_000 });
    const ending = new AbortController();
    // Its module is loaded before the clock moves on.
    await leasehold(["ls", "--help"]);
    const scan = vi.spyOn(store, "scan");
    const called = leasehold(["ls", "--watch", ...words.split(" ")], {
      ...{ store, clock, signal: ending.signal },
      ...options,
    });
    const end = () => {
      ending.abort(new Interruption("SIGINT"));
      return called;
    };
    return { clock, holder, lease, scan, end };
  }

  it("looks again and again with --watch until it is interrupted", async () => {
    const { clock, end } = await watching("--every 5s -o key");
    await clock.advance(11_000);
    expect(await end()).toEqual({ code: 130, stdout: "import\nimport\nimport\n", stderr: "" });
  });

  it("clears a terminal before each look with --watch, so that it shows who holds what now", async () => {
    const { clock, holder, lease, end } = await watching("--every 5s", { columns: 80 });
    await clock.advance(1_000);
    await lease.release();
    await holder("bob").acquire("report", { leaseDurationMs: 60_000 });
    await clock.advance(5_000);
    const [before, first, second] = (await end()).stdout.split("\u001b[H\u001b[2J\u001b[3J");
    expect([before, first, second]).toEqual([
      "",
      expect.stringMatching(/import +held +alice/),
      expect.stringMatching(/report +held +bob/),
    ]);
    expect(second).not.toContain("import");
  });

  it("goes on with --watch when DynamoDB fails for a while, and says so once", async () => {
    const { clock, scan, end } = await watching("-o key");
    await clock.advance(1_000);
    scan.mockRejectedValue(new LeaseServiceError("LEASE_THROTTLED", "throttled"));
    await clock.advance(6_000);
    scan.mockRestore();
    await clock.advance(2_000);
    const { stdout, stderr } = await end();
    expect(stdout).toBe("import\nimport\n");
    expect(stderr.match(/throttled; trying again/g)).toHaveLength(1);
  });

  it.each([
    ["behind", 3_600_000, "1h 00m behind"],
    ["ahead of", -3_600_000, "59m 59s ahead of"],
  ])("judges by DynamoDB's time where this machine's clock is %s it, and says so", async (_, offMs, text) => {
    const { clock, holder, store, call } = lockTable();
    await holder("worker").acquire("import", { leaseDurationMs: 60_000 });
    const { stdout, stderr } = await call(["ls"], { store: farAway(store, () => clock.now() + offMs) });
    expect(stdout).toContain(offMs > 0 ? "EXPIRED" : "held");
    expect(stderr).toMatch(new RegExp(`this machine's clock is ${text} DynamoDB's`));
  });

  it("escapes in JSON what a terminal would act on, and it means the same", async () => {
    const { call, holder } = lockTable();
    const key = "a\u001b[2J\u009b2J\u202e\u{e0001}b";
    await holder("worker").acquire(key);
    const { stdout } = await call(["ls", "--json"]);
    expect(stdout.match(/[^\n\x20-\x7e]/g)).toBeNull();
    expect(JSON.parse(stdout)).toMatchObject([{ key }]);
  });

  it("tells what all of a large table costs, where DynamoDB says how large it is", async () => {
    const cost = readCost(100_000, 50_000_000);
    const { message } = await tooLargeError(cost, async () => ({ items: 2_400_000, bytes: 1_200_000_000 }));
    expect(message).toBe(
      "stopped after 100,000 items read (6,104 RCU, $0.0008); the table has about 2,400,000 items: reading all costs 146,484.5 RCU, $0.02. --scan reads all; leasehold get KEY reads one key",
    );
    const refusal = Object.assign(new Error("AccessDenied"), { $fault: "client" });
    const denied = (): Promise<never> => Promise.reject(refusal);
    expect((await tooLargeError(cost, denied)).message).toContain("there are more. --scan reads all");
  });
});

describe("patterns of owners", () => {
  it("fit as the regular expressions of them would", () => {
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "😀", "."), maxLength: 8 });
    const text = fc.string({ unit: fc.constantFrom("a", "b", "😀", ".", "\n"), maxLength: 8 });
    fc.assert(
      fc.property(pattern, text, (glob, given) => {
        const source = glob.replaceAll(".", "\\.").replaceAll("*", "[^]*").replaceAll("?", "[^]");
        expect(globTest(glob)(given)).toBe(new RegExp(`^${source}$`, "u").test(given));
      }),
      { numRuns: 2_000 },
    );
  });
});
