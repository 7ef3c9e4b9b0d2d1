import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { describe, expect, it, vi } from "vitest";
import { paceOf } from "../../packages/cli/src/commands/shared/polling.ts";
import { type TopFrame, topLines } from "../../packages/cli/src/top/top-view.ts";
import { RateMeter } from "../../packages/cli/src/view/rate-meter.ts";
import { readCost } from "../../packages/cli/src/view/read-cost.ts";
import { selectRows } from "../../packages/cli/src/view/row-selection.ts";
import { tableEvents } from "../../packages/cli/src/view/table-events.ts";
import { readTable } from "../../packages/cli/src/view/table-snapshot.ts";
import { leasehold } from "../support/command-line.ts";
import { lockTable } from "../support/lock-table.ts";

const noPaint = (_style: string, text: string): string => text;

describe("leasehold top", () => {
  it("shows what is held, for how long, what is left of each lease, and what looking costs", async () => {
    const { clock, holder } = lockTable();
    const client = holder("ip-10-0-3-17:812");
    await holder("ip-10-0-9-4:3310").acquire("nightly-report", { leaseDurationMs: 60_000 });
    await clock.advance(3_600_000);
    await client.acquire("label-printer", { leaseDurationMs: 30_000, heartbeat: true });
    void holder("waiter")
      .acquire("label-printer", { waitMs: 3_600_000, order: fair() })
      .catch(() => undefined);
    await new Semaphore(client, "payment-api", { permits: 5 }).acquire({ leaseDurationMs: 60_000 });
    await clock.advance(25_000);
    const snapshot = await readTable(client);
    const frame: TopFrame = {
      place: "table leases · eu-central-1",
      isReadOnly: true,
      everyMs: 2_000,
      snapshot,
      rows: selectRows(snapshot),
      rates: { acquired: 41, takenOver: 0, lost: 0 },
      sort: "key",
      filter: "",
      isFiltering: false,
      selected: "lock nightly-report",
      changed: new Set(["lock label-printer"]),
      trouble: undefined,
    };
    expect(
      `\n${topLines(frame, { columns: 100, rows: 12, paint: noPaint }).join("\n")}\n`,
    ).toMatchInlineSnapshot(`
      "
      leasehold top · table leases · eu-central-1 · 04:00:25 UTC · every 2s · 0.3 RCU/s ($0.003 a day) ·
      read-only
      held 2   expired 1   paused 0   waiting (fair) 1   acquired/min 41   taken over/min 0   lost/min 0

        KEY             STATE    HOLDER              HELD  ENDS  lease left      WAIT  RENEWED
      • label-printer   held     ip-10-0-3-17:812     25s   24s  ███████████░░░     1       6s
      ▸ nightly-report  EXPIRED  ip-10-0-9-4:3310  1h 00m    !!  over 59m 25s       0        —
        payment-api     1 of 5   semaphore              —     —                     0        —



      q quit  s sort: key  / filter  ⏎ get
      "
    `);
    expect(
      `\n${topLines(frame, { columns: 40, rows: 16, paint: noPaint }).join("\n")}\n`,
    ).toMatchInlineSnapshot(`
      "
      leasehold top · table leases ·
      eu-central-1 · 04:00:25 UTC · every 2s ·
      0.3 RCU/s ($0.003 a day) · read-only
      held 2   expired 1   paused 0   waiting
      (fair) 1   acquired/min 41   taken
      over/min 0   lost/min 0

        KEY             STATE    ENDS
      • label-printer   held      24s
      ▸ nightly-report  EXPIRED    !!
        payment-api     1 of 5      —




      q quit  s sort: key  / filter  ⏎ get
      "
    `);
    for (const columns of [40, 60, 80, 120]) {
      for (const rows of [4, 10, 24]) {
        const lines = topLines({ ...frame, isFiltering: true }, { columns, rows, paint: noPaint });
        expect(lines.length).toBeLessThanOrEqual(rows);
        expect(lines.filter((line) => line.length > columns)).toEqual([]);
      }
    }
  });

  it.each([
    ["5,000 locks", [], 29],
    ["5,000 locks and --max-rcu 100", ["--max-rcu", "100"], 2],
  ] as const)("looks at %s as often as its units allow", async (_name, args, seconds) => {
    const pause = paceOf({
      every: undefined,
      "max-rcu": args.length > 0 ? Number(args[1]) : undefined,
    });
    // 5,000 items of about 236 bytes.
    expect(pause({ cost: readCost(5_000, 5_000 * 236) })).toBeGreaterThanOrEqual(seconds * 1_000 - 500);
    expect(pause({ cost: readCost(5_000, 5_000 * 236) })).toBeLessThan(seconds * 1_000 + 500);
    expect(pause({ cost: readCost(10, 2_360) })).toBe(2_000);
  });

  it("counts acquisitions by the growth of fencing tokens, those between two looks included", async () => {
    const { clock, holder } = lockTable();
    const client = holder("worker");
    const meter = new RateMeter();
    let before = await readTable(client);
    meter.add(undefined, before, []);
    for (let look = 0; look < 5; look += 1) {
      for (let n = 0; n < 3; n += 1) {
        const lease = await client.acquire("import");
        await clock.advance(100);
        await lease.release();
      }
      await clock.advance(1_700);
      const after = await readTable(client);
      meter.add(before, after, tableEvents(before, after));
      before = after;
    }
    // In 10 s 15, of which those before the key was first seen count as one.
    expect(meter.rates).toEqual({ acquired: 78, takenOver: 0, lost: 0 });
    await clock.advance(60_000);
    const after = await readTable(client);
    meter.add(before, after, tableEvents(before, after));
    expect(meter.rates.acquired).toBe(0);
  });

  it("wants a terminal, and names what does without one", async () => {
    const { store, clock } = lockTable();
    const { code, stderr } = await leasehold(["top"], { store, clock });
    expect(code).toBe(64);
    expect(stderr).toContain("leasehold ls and leasehold watch do without one");
  });

  it("quits with q, and leaves the terminal as it was", async () => {
    const { store, holder } = lockTable();
    await holder("worker").acquire("import");
    const { code, stdout } = await leasehold(["top"], { store, answers: ["q"], columns: 80 });
    expect(code).toBe(0);
    expect(stdout.startsWith("\u001b[?1049h")).toBe(true);
    expect(stdout.endsWith("\u001b[?7h\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  /** The screen of a terminal, and its keyboard. */
  function opened() {
    const { store, clock, holder } = lockTable();
    const terminal = () => Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const [stdin, stdout, stderr] = [terminal(), terminal(), terminal()];
    let shown = "";
    stdout.on("data", (chunk) => {
      shown += chunk;
    });
    /** Waits until a text is shown that was not before. */
    const shows = async (text: string): Promise<void> => {
      await vi.waitFor(() => expect(shown).toContain(text), { interval: 1 });
      shown = "";
    };
    const begin = () =>
      runCommandLine(["top"], {
        ...{ stdin, stdout, stderr, clock, open: async () => store },
        env: { LEASEHOLD_TABLE_NAME: "leases", NO_COLOR: "1" },
        signals: { signal: new AbortController().signal, redirect: () => () => {} },
      });
    return { clock, holder, begin, shows, type: (keys: string) => void stdin.write(keys) };
  }

  it("does what a key says about the row that was chosen when it was pressed", async () => {
    const { holder, begin, shows, type } = opened();
    await holder("first holder").acquire("a-key");
    await holder("second holder").acquire("b-key");
    const code = begin();
    await shows("second holder");
    type("\rj");
    await shows("holder          first holder");
    type("qq");
    expect(await code).toBe(0);
  });
});
