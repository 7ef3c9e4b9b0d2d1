import { LeaseServiceError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { TaskSet } from "@leasehold/jobs";
import { beforeAll, describe, expect, it } from "vitest";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { adminOf } from "../support/admin.ts";
import { leasehold } from "../support/command-line.ts";
import { changedStore, type LockTable, lockTable } from "../support/lock-table.ts";

/** An import that is held and renewed, 64 s after it began. */
async function importing(): Promise<LockTable> {
  const table = lockTable();
  await table.holder("sfn:import-2f1c").acquire("import/orders", { heartbeat: true });
  await table.clock.advance(64_000);
  return table;
}

/** A report whose holder has died hours ago. */
async function deadReport(): Promise<LockTable> {
  const table = lockTable();
  await table.holder("ip-10-0-9-4:3310").acquire("nightly-report", { leaseDurationMs: 60_000 });
  await table.clock.advance(33_180_000);
  return table;
}

async function audit({ call }: LockTable): Promise<unknown[]> {
  return JSON.parse((await call(["audit", "--json"])).stdout);
}

// Modules are loaded before a clock moves on.
beforeAll(async () => {
  for (const name of ["stop", "break", "pause", "resume", "audit"]) await leasehold([name, "--help"]);
});

describe("leasehold stop", () => {
  it("shows the holder and when it hears of it, asks, and keeps the reason", async () => {
    const table = await importing();
    const { code, stderr } = await table.call(["stop", "import/orders", "--reason", "INC-4411: wrong file"], {
      answers: ["y"],
    });
    expect(code).toBe(0);
    expect(`\n${stderr}`).toMatchInlineSnapshot(`
      "
      import/orders is held by sfn:import-2f1c for 1m 04s, renewed 7s ago.
      It hears of it at its next renewal (in about 3s).
      Ask it to stop? [y/N] y
      asked.
      "
    `);
    const { revocation } = (await table.holder("x").inspect("import/orders")) ?? {};
    expect(revocation).toBe("INC-4411: wrong file");
    expect(await audit(table)).toMatchObject([
      {
        action: "stop",
        key: "import/orders",
        reason: "INC-4411: wrong file",
        holder: { owner: "sfn:import-2f1c" },
      },
    ]);
  });

  it("says beforehand when a holder will never hear of it", async () => {
    const { call, holder, clock } = lockTable();
    await holder("cron").acquire("import", { leaseDurationMs: 300_000 });
    await clock.advance(240_000);
    const { stderr } = await call(["stop", "import"], { answers: ["n"] });
    expect(`\n${stderr}`).toMatchInlineSnapshot(`
      "
      import is held by cron for 4m 00s.
      It does not renew (no heartbeat since it was acquired 4m 00s ago, lease 5m 00s): it will never hear of it. Its lease ends at 03:05:00 UTC.
      Ask it to stop all the same? [y/N] n
      leasehold: nothing done
      "
    `);
  });

  it.each([
    ["lets go", { heartbeat: true }, 0, /import was released \d+s after you asked\.\n$/],
    [
      "has died",
      { leaseDurationMs: 10_000 },
      0,
      /import was over, without a release 1\ds after you asked\.\n$/,
    ],
    ["goes on", { heartbeat: true }, 75, /import is still held 20s after you asked\.\n$/],
  ])("waits for a holder that %s, and says how long that took", async (what, options, exit, said) => {
    const { call, holder, clock } = lockTable();
    const lease = await holder("cron").acquire("import", options);
    if (what === "lets go") lease.signal.addEventListener("abort", () => void lease.release());
    const called = call(["stop", "import", "--yes", "--wait", "20s"]);
    await clock.advance(30_000);
    expect(await called).toMatchObject({ code: exit, stderr: expect.stringMatching(said) });
  });

  it("exits with 69 where nothing has answered since it asked", async () => {
    const table = await importing();
    const { store, clock, holder } = table;
    let isDown = false;
    const dead = changedStore(store, {
      query: async (...args) => {
        if (isDown) throw new LeaseServiceError("LEASE_NO_ANSWER", "no answer");
        return await store.query(...args);
      },
      transact: async (...args) => {
        isDown = true;
        return await store.transact(...args);
      },
    });
    const called = table.call(["stop", "import/orders", "--yes", "--wait", "20s"], { store: dead });
    await clock.advance(60_000);
    const { code, stderr } = await called;
    expect(code).toBe(69);
    expect(stderr).toContain("nothing is known of import/orders since you asked: no answer in 20s");
    expect(stderr).not.toContain("is still held");
    expect((await holder("x").inspect("import/orders"))?.revocation).toBeDefined();
  });

  it("tells of an error that comes after Ctrl-C, and not from it", async () => {
    const table = await importing();
    const stop = new AbortController();
    const store = changedStore(table.store, {
      transact: () => {
        stop.abort(new Interruption("SIGINT"));
        return Promise.reject(new LeaseServiceError("LEASE_REQUEST_REJECTED", "the item is full"));
      },
    });
    const options = { store, signal: stop.signal };
    const { code, stderr } = await table.call(["stop", "import/orders", "--yes"], options);
    expect(code).toBe(69);
    expect(stderr).toContain("the item is full");
  });

  it.each([
    ["expired", 1, "the lease ended 9h 12m ago: nobody need stop it"],
    ["free", 1, "nobody holds free: released 9h 13m ago by ip-10-0-9-4:3310. Nothing done"],
    ["unknown", 1, "nobody holds unknown. Nothing done"],
    ["paused", 1, "it is paused by bob: leasehold resume ends that"],
  ])("does nothing to a key that is %s", async (key, exit, message) => {
    const { call, holder, clock } = lockTable();
    const client = holder("ip-10-0-9-4:3310");
    await client.acquire("expired", { leaseDurationMs: 60_000 });
    await (await client.acquire("free")).release();
    await clock.advance(33_180_000);
    await new LeaseOperator(client, { by: "bob" }).pause("paused", { forMs: 60_000, reason: "r" });
    const { code, stderr } = await call(["stop", key, "--yes"]);
    expect(code).toBe(exit);
    expect(stderr).toContain(message);
  });
});

describe("every intervention", () => {
  const commands = [
    ["stop", "import/orders"],
    ["break", "import/orders", "--reason", "gone"],
    ["pause", "free", "--for", "1h", "--reason", "gone"],
  ];

  it.each(commands)("%s prints what it would send with --dry-run, and sends nothing", async (...args) => {
    const table = await importing();
    const { code, stdout } = await table.call([...args, "--dry-run"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ operation: "transact", tableName: "leases" });
    expect(await audit(table)).toEqual([]);
  });

  it.each(commands.slice(0, 2))("%s refuses without a terminal and without --yes", async (...args) => {
    const { call } = await importing();
    const { code, stderr } = await call([...args, "-v"]);
    expect([code, stderr]).toEqual([64, expect.stringContaining("--yes says yes")]);
    expect(stderr).toContain("1 request: 1 query; about 1 RCU");
  });

  it.each([
    ["stop", ["", "n", "no", "import/orders"]],
    ["break", ["y", "yes", "import", ""]],
  ])("%s does nothing when the answer is one of %j", async (name, answers) => {
    const table = await importing();
    for (const answer of answers) {
      const args = [name, "import/orders", "--reason", "r"];
      const { code, stderr } = await table.call(args, { answers: [answer] });
      expect([code, stderr]).toEqual([1, expect.stringContaining("nothing done")]);
    }
    expect(await audit(table)).toEqual([]);
    expect(await table.holder("x").inspect("import/orders")).toBeDefined();
  });

  it("acts on the lease whose token was seen, by its prefix", async () => {
    const { call, holder } = lockTable();
    const client = holder("worker");
    const semaphore = new Semaphore(client, "payment-api", { permits: 5 });
    await semaphore.acquire();
    await semaphore.acquire();
    const refused = await call(["break", "payment-api", "--yes", "--reason", "gone"]);
    expect(refused.code).toBe(64);
    expect(`\n${refused.stderr}`).toMatchInlineSnapshot(`
      "
      leasehold: payment-api has 2 leases; say which one
        --token 00000001  worker, held (semaphore)
        --token 00000002  worker, held (semaphore)
      "
    `);
    expect((await call(["stop", "payment-api", "--token", "0000"])).code).toBe(64);
    const args = ["break", "payment-api", "--token", "00000002", "--yes", "--reason", "gone"];
    expect((await call(args)).code).toBe(0);
    const tokens = (await adminOf(client).inspectAll("payment-api")).map(({ token }) => token.slice(0, 8));
    expect(tokens).toEqual(["00000001"]);
    const gone = await call(args);
    expect([gone.code, gone.stderr]).toEqual([
      76,
      expect.stringMatching(/held by another since .* \(worker\): look/),
    ]);
  });

  it("never acts on a holder that came while the question was answered", async () => {
    const { store, clock, holder, call } = lockTable();
    const lease = await holder("first").acquire("import");
    const racing = changedStore(store, {
      query: async (...args) => {
        const page = await store.query(...args);
        await lease.release();
        await holder("second").acquire("import");
        await clock.advance(2_000);
        return page;
      },
    });
    const { code, stderr } = await call(["break", "import", "--reason", "r"], {
      store: racing,
      answers: ["import"],
    });
    expect(code).toBe(76);
    expect(stderr).toContain("held by another since 2s ago (second): look again");
    expect((await holder("x").inspect("import"))?.owner).toBe("second");
  });
});

describe("leasehold break", () => {
  it("says what it does to a living holder, wants the key typed and a reason", async () => {
    const table = await importing();
    for (const owner of ["ip-10-0-4-2:99", "lambda:labels"]) {
      void table
        .holder(owner)
        .acquire("import/orders", { waitMs: 3_600_000, order: fair() })
        .catch(() => undefined);
      await table.clock.advance(1_000);
    }
    const { code, stderr } = await table.call(["break", "import/orders"], {
      answers: ["import/orders", "host is gone, INC-4411"],
    });
    expect(code).toBe(0);
    expect(`\n${stderr}`).toMatchInlineSnapshot(`
      "
      import/orders is HELD AND ALIVE: renewed 9s ago by sfn:import-2f1c, fencing token …400001.
        · Breaking it does not stop the work. It hears of it at its next renewal (within about 500ms), or at
          its deadline (03:01:27 UTC, in 21s), and until then two may be at work.
        · Safe only if its writes are fenced (fence() or conditionCheck()).
        · \`leasehold stop import/orders\` asks first.
      Type the key to break it: import/orders
      host is gone, INC-4411
      broken. The key is free. 2 are waiting: the next is ip-10-0-4-2:99.
      "
    `);
    expect(await audit(table)).toMatchObject([{ action: "break", reason: "host is gone, INC-4411" }]);
  });

  it("wants a reason with --yes, too", async () => {
    const table = await importing();
    const { code, stderr } = await table.call(["break", "import/orders", "--yes"]);
    expect(code).toBe(64);
    expect(stderr).toContain("--reason is missing");
  });

  it("leaves an expired lease to the next caller, unless --force", async () => {
    const table = await deadReport();
    const { code, stderr } = await table.call(["break", "nightly-report", "--yes", "--reason", "r"]);
    expect(code).toBe(1);
    expect(`\n${stderr}`).toMatchInlineSnapshot(`
      "
      nightly-report was held by ip-10-0-9-4:3310. Its lease ended 9h 12m ago: nobody need break it, the next caller takes over.
      leasehold: nothing done. (--force to remove the record of it all the same)
      "
    `);
    expect((await table.call(["break", "nightly-report", "--yes", "--reason", "r", "--force"])).code).toBe(0);
    expect(await table.holder("x").inspect("nightly-report")).toBeUndefined();
  });

  it("breaks a dead worker's claim of a task, which waits again", async () => {
    const { call, holder } = lockTable();
    const tasks = new TaskSet(holder("worker"), "orders");
    await tasks.add([{ id: "doc-1" }]);
    await tasks.claim();
    expect((await call(["break", "orders", "--yes", "--reason", "gone"])).code).toBe(0);
    expect(await tasks.claim()).toMatchObject({ id: "doc-1" });
  });

  it("takes a key of control characters as it is shown", async () => {
    const { call, holder } = lockTable();
    await holder("worker").acquire("a\u001b[2Jb");
    const { code, stderr } = await call(["break", "a\u001b[2Jb", "--reason", "r"], {
      answers: ["a\\x1b[2Jb"],
    });
    expect(code).toBe(0);
    expect(stderr).toContain("a\\x1b[2Jb is HELD");
    expect(stderr).not.toContain("\u001b[2J");
  });
});

describe("leasehold pause and resume", () => {
  it("keeps a free key closed, for a time and for a reason, and opens it again", async () => {
    const table = lockTable();
    const { call, clock, holder } = table;
    const paused = await call(["pause", "price-feed", "--for", "2h", "--reason", "INC-4411, vendor down"]);
    expect(paused.code).toBe(0);
    expect(paused.stderr).toMatchInlineSnapshot(`
      "paused by alice@laptop: price-feed is closed until 2026-11-22 05:00:00 UTC, for 2h 00m, or until leasehold resume price-feed
      "
    `);
    expect(await holder("worker").tryAcquire("price-feed")).toBeUndefined();
    expect((await call(["ls"], { columns: 120 })).stdout).toContain("PAUSED  paused by alice@");
    await clock.advance(60_000);
    const again = await call(["pause", "price-feed", "--for", "2h", "--reason", "me too"]);
    expect(again.code).toBe(75);
    expect(again.stderr).toContain("price-feed is paused already by alice@");
    const resumed = await call(["resume", "price-feed"]);
    expect(resumed.code).toBe(0);
    expect(await holder("worker").tryAcquire("price-feed")).toBeDefined();
    expect(await audit(table)).toMatchObject([
      { action: "resume" },
      { action: "pause", reason: "INC-4411, vendor down" },
    ]);
  });

  it("waits for the holder with --wait, and leaves it alone without", async () => {
    const { call, clock, holder } = lockTable();
    const lease = await holder("worker").acquire("import", { leaseDurationMs: 30_000 });
    const args = ["pause", "import", "--for", "2h", "--reason", "r"];
    const refused = await call(args);
    expect(refused.code).toBe(75);
    expect(refused.stderr).toContain("import is held by worker");
    const called = call([...args, "--wait", "10m"]);
    await clock.advance(5_000);
    await lease.release();
    await clock.advance(60_000);
    expect((await called).code).toBe(0);
  });

  it("asks before it ends the pause of another operator, and never ends a holder's lease", async () => {
    const { call, holder } = lockTable();
    const operator = new LeaseOperator(holder("x"), { by: "bob@desk" });
    await operator.pause("price-feed", { forMs: 60_000, reason: "vendor down" });
    expect((await call(["resume", "price-feed"])).code).toBe(64);
    const asked = await call(["resume", "price-feed"], { answers: ["y"] });
    expect(asked.code).toBe(0);
    expect(asked.stderr).toContain('price-feed is paused by bob@desk for 0ms: "vendor down".');
    expect((await call(["resume", "price-feed"])).code).toBe(1);
    await holder("worker").acquire("price-feed");
    const refused = await call(["resume", "price-feed", "--yes"]);
    expect(refused.code).toBe(76);
    expect(refused.stderr).toContain("It is not paused. Nothing done");
  });

  it("closes a semaphore too, shows that, and names who finishes and what goes on", async () => {
    const { call, holder } = lockTable();
    const semaphore = new Semaphore(holder("worker"), "payment-api", { permits: 5 });
    await semaphore.acquire({ leaseDurationMs: 600_000 });
    await new TaskSet(holder("worker"), "payment-api").add([{ id: "t" }]);
    const { code, stderr } = await call(["pause", "payment-api", "--for", "1h", "--reason", "r"]);
    expect(code).toBe(0);
    expect(`\n${stderr}`).toMatchInlineSnapshot(`
      "
      paused by alice@laptop: payment-api is closed until 2026-11-22 04:00:00 UTC, for 1h 00m, or until leasehold resume payment-api
      still there, until they end: worker (permit)
      not paused under payment-api: its tasks (leasehold tasks drop takes one away)
      "
    `);
    expect(await semaphore.tryAcquire()).toBeUndefined();
    const { stdout } = await call(["ls", "--all"], { columns: 120 });
    expect(stdout.match(/PAUSED/g)).toHaveLength(2);
    expect((await call(["resume", "payment-api"])).code).toBe(0);
    expect(await semaphore.tryAcquire()).toBeDefined();
  });
});

describe("leasehold audit", () => {
  it("shows who did what to whom, and why, the latest first", async () => {
    const table = await importing();
    const { call, clock } = table;
    await call(["stop", "import/orders", "--yes", "--reason", "wrong file"]);
    await clock.advance(2_000);
    await call(["break", "import/orders", "--yes", "--reason", "did not stop\u001b[2J", "--owner", "bob"]);
    const { code, stdout } = await call(["audit"]);
    expect(code).toBe(0);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      WHEN (UTC)           DID    KEY            BY            HOLDER           WHY
      2026-11-22 03:01:06  break  import/orders  bob           sfn:import-2f1c  did not stop\\x1b[2J
      2026-11-22 03:01:04  stop   import/orders  alice@laptop  sfn:import-2f1c  wrong file
      "
    `);
    expect((await call(["audit", "import/orders", "--action", "break", "-o", "key"])).stdout).toBe(
      "import/orders\n",
    );
    expect((await call(["audit", "--by", "b?b", "-o", "key"])).stdout).toBe("import/orders\n");
    expect((await call(["audit", "--since", "1s", "-o", "key"])).stdout).toBe("import/orders\n");
    for (const line of (await call(["audit"], { columns: 40 })).stdout.split("\n")) {
      expect(line.length).toBeLessThanOrEqual(40);
    }
  });

  it("has nothing to show of an empty table", async () => {
    const { store, clock } = lockTable();
    expect(await leasehold(["audit", "--fail-if-empty"], { store, clock })).toEqual({
      code: 1,
      stdout: "",
      stderr: "operators have done nothing that is kept\n",
    });
  });
});
