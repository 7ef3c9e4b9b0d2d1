import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { describe, expect, it } from "vitest";
import { type LockTable, lockTable, tooWide } from "../support/lock-table.ts";

/** A printer that is held and alive, with two callers in line and a holder before. */
async function printer(): Promise<LockTable> {
  const table = lockTable();
  const { clock, holder } = table;
  const before = await holder("ip-10-0-9-4:3310").acquire("label-printer");
  await clock.advance(12_000);
  await before.release();
  const data = { job: "orders-4711", step: "page 3 of 9" };
  await holder("ip-10-0-3-17:812").acquire("label-printer", { data, heartbeat: true });
  for (const owner of ["ip-10-0-4-2:99", "lambda:labels 2026/11/22[$L]"]) {
    void holder(owner)
      .acquire("label-printer", { waitMs: 3_600_000, order: fair() })
      .catch(() => undefined);
    await clock.advance(64_000);
  }
  return table;
}

describe("leasehold get", () => {
  it("shows the holder, whether it is alive, who waits, who had it before, and what can be done", async () => {
    const { call } = await printer();
    const { code, stdout } = await call(["get", "label-printer"]);
    expect(code).toBe(0);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      label-printer  held, and alive: renewed 5s ago
        holder          ip-10-0-3-17:812
        since           2026-11-22 03:00:12 UTC, 2m 08s ago
        ends            2026-11-22 03:02:45 UTC, in 26s, unless it is renewed
        lease           30s, renewed 13 times, last 5s ago
        fencing         1795316400002
        token           00000002-530a-4fa5-8d78-d57600000002
        data            {"job":"orders-4711","step":"page 3 of 9"}
        asked to stop?  no

           waiting (fair, by arrival)     since  ticket ends in
        1  ip-10-0-4-2:99                2m 08s             59s
        2  lambda:labels 2026/11/22[$L]  1m 04s             36s
        Callers that wait without \`fair\` leave nothing in the table: they are not shown.
        parked workflows: none

        last holder       held for  ended     at (utc)
        ip-10-0-9-4:3310       12s  released  2026-11-22 03:00:12

      What you can do
        ask it to stop         leasehold stop label-printer --token 00000002
        break it               leasehold break label-printer --token 00000002
                               (it may still be working: docs/RUNBOOK.md#a-lock-is-stuck)
        wait until it is free  leasehold wait label-printer
      "
    `);
  });

  it("fits into a terminal of 40 columns, but for command lines to be copied", async () => {
    const { call } = await printer();
    const { stdout } = await call(["get", "label-printer"], { columns: 40 });
    expect(tooWide(stdout, 40).filter((line) => !line.startsWith("leasehold "))).toEqual([]);
    // A word that is longer than a line goes on in the next one.
    const letters = (text: string): string => text.replaceAll(/\s+/g, "");
    for (const text of [
      "ends 2026-11-22 03:02:45 UTC, in 26s, unless it is renewed",
      "token 00000002-530a-4fa5-8d78-d57600000002 data",
      "2 lambda:labels 2026/11/22[$… 1m 04s",
      "Callers that wait without `fair` leave nothing in the table: they are not shown.",
      "(it may still be working: docs/RUNBOOK.md#a-lock-is-stuck) leasehold break label-printer --token 00000002",
    ]) {
      expect(letters(stdout)).toContain(letters(text));
    }
  });

  it("says of a holder that does not renew that nobody knows whether it is alive", async () => {
    const { call, holder, clock } = lockTable();
    await holder("cron").acquire("import", { leaseDurationMs: 300_000 });
    await clock.advance(240_000);
    const { stdout } = await call(["get", "import"]);
    expect(stdout.split("\n").slice(0, 3).join("\n")).toMatchInlineSnapshot(`
      "import
        held; whether its holder is alive is not known: not renewed since it was acquired 4m 00s ago
        (lease 5m 00s)"
    `);
  });

  it("says of an expired lease that the next caller takes it over", async () => {
    const { call, holder, clock } = lockTable();
    await holder("cron").acquire("import", { leaseDurationMs: 60_000 });
    await clock.advance(3_600_000);
    const { code, stdout } = await call(["get", "import"]);
    expect(code).toBe(1);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      import  EXPIRED 59m 00s ago, and not released: the next caller takes it over
        holder          cron
        since           2026-11-22 03:00:00 UTC, 1h 00m ago
        ends            2026-11-22 03:01:00 UTC, 59m 00s ago
        lease           1m 00s, not renewed
        fencing         1795316400001
        token           00000001-530a-4fa5-8d78-d57600000001
        data            none
        asked to stop?  no

        waiting (fair): nobody
        Callers that wait without \`fair\` leave nothing in the table: they are not shown.
        parked workflows: none

      What you can do
        remove the record of it  leasehold break import --token 00000001 --force
                                 (no need: the next caller takes it over)
      "
    `);
  });

  it("shows who has paused a key, why and for how long, and how to end it", async () => {
    const { call, holder, clock } = lockTable();
    const operator = new LeaseOperator(holder("cli"), { by: "alice@laptop" });
    await operator.pause("price-feed", { forMs: 7_200_000, reason: "INC-4411, vendor down" });
    await clock.advance(60_000);
    const { code, stdout } = await call(["get", "price-feed"]);
    expect(code).toBe(0);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      price-feed  PAUSED by alice@laptop for 1h 59m more
        paused by  alice@laptop
        reason     INC-4411, vendor down
        since      2026-11-22 03:00:00 UTC, 1m 00s ago
        ends       2026-11-22 05:00:00 UTC, in 1h 59m
        fencing    1795316400001
        token      00000001-530a-4fa5-8d78-d57600000001

        waiting (fair): nobody
        Callers that wait without \`fair\` leave nothing in the table: they are not shown.
        parked workflows: none

        operators did  by               ago  why
        pause          alice@laptop  1m 00s  INC-4411, vendor down

      What you can do
        end the pause          leasehold resume price-feed
        wait until it is free  leasehold wait price-feed
      "
    `);
  });

  it("shows the places of every other primitive, and which primitive it is", async () => {
    const { call, holder, clock } = lockTable();
    const client = holder("ip-10-0-3-17:812");
    const semaphore = new Semaphore(client, "payment-api", { permits: 5 });
    await semaphore.acquire({ permits: 2 });
    await semaphore.acquire();
    const lock = new ReadWriteLock(client, "catalogue");
    await lock.read();
    await lock.read();
    const tasks = new TaskSet(client, "orders");
    await tasks.add([{ id: "doc-1" }, { id: "doc-2" }]);
    await tasks.claim();
    void new JobRuns(client, "report").run("2026-11-22T03:00:00.000Z", () => new Promise(() => undefined));
    await clock.advance(4_000);
    const shown = await Promise.all(
      ["payment-api", "catalogue", "orders", "report"].map((key) => call(["get", key])),
    );
    expect(shown.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(`\n${shown.map(({ stdout }) => stdout).join("\n")}`).toMatchInlineSnapshot(`
      "
      payment-api  semaphore: 3 of 5 permits are taken
        seat  holder            state  held for  ends in  renewed  token
        2 ×   ip-10-0-3-17:812  held         4s      26s       no  00000001
        1 ×   ip-10-0-3-17:812  held         4s      26s       no  00000002

      What you can do
        ask it to stop         leasehold stop payment-api --token 00000001
        break it               leasehold break payment-api --token 00000001
                               (it may still be working: docs/RUNBOOK.md#a-lock-is-stuck)
        wait until it is free  leasehold wait payment-api

      catalogue  read-write lock: 2 readers
        seat  holder            state  held for  ends in  renewed  token
        read  ip-10-0-3-17:812  held         4s      26s       no  00000003
        read  ip-10-0-3-17:812  held         4s      26s       no  00000004

      What you can do
        ask it to stop         leasehold stop catalogue --token 00000003
        break it               leasehold break catalogue --token 00000003
                               (it may still be working: docs/RUNBOOK.md#a-lock-is-stuck)
        wait until it is free  leasehold wait catalogue

      orders  task set: 1 running; 1 waiting, 0 ended
        place                holder            state  held for  ends in  renewed  token
        task#7db485a6#doc-2  ip-10-0-3-17:812  held         4s      26s       no  00000005

      What you can do
        look at its tasks  leasehold tasks orders

      report  job: held; runs kept: 1
        place                         holder            state  held for  ends in  renewed  token
        run#2026-11-22T03:00:00.000Z  ip-10-0-3-17:812  held         4s      26s       no  00000006

      What you can do
        look at its runs  leasehold jobs runs report
      "
    `);
  });

  it("exits with 1 for a free key, and tells who had it last", async () => {
    const { call, holder, clock } = lockTable();
    const lease = await holder("ip-10-0-9-4:3310").acquire("import");
    await clock.advance(9_000);
    await lease.release();
    const { code, stdout } = await call(["get", "import"]);
    expect(code).toBe(1);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      import  free

        last holder       held for  ended     at (utc)
        ip-10-0-9-4:3310        9s  released  2026-11-22 03:00:09

      What you can do
        keep it closed  leasehold pause import --for 2h --reason '…'
      "
    `);
    expect((await call(["get", "never-seen"])).stdout).toContain("nothing is known of this key");
  });

  it("shows hostile keys, owners and payloads as text, and quotes them for a shell", async () => {
    const { call, holder } = lockTable();
    const key = "a b'\u001b]0;owned\u0007\n-$(rm)";
    await holder("o\u001b[2J\u202e").acquire(key, { data: { evil: "\u001b[31m\u2028" } });
    const { stdout } = await call(["get", key]);
    expect(stdout.match(/[^\n\x20-\x7e]/g) ?? []).toEqual([]);
    expect(stdout).toContain(`leasehold wait $'a b\\'\\033]0;owned\\007\\012-$(rm)'`);
  });

  it("gives other programs everything as one document", async () => {
    const { call } = await printer();
    const { stdout } = await call(["get", "label-printer", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      key: "label-printer",
      leases: [{ state: "held", owner: "ip-10-0-3-17:812", heldForMs: 128_000 }],
      waiting: [{ position: 1, owner: "ip-10-0-4-2:99" }, { position: 2 }],
      holders: [{ owner: "ip-10-0-9-4:3310", heldForMs: 12_000, ended: "released" }],
      nextSteps: [{ action: "stop" }, { action: "break" }, { action: "wait" }],
    });
  });
});
