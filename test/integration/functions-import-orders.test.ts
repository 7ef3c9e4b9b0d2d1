import { InvalidOptionsError, LeaseClient, LeaseLostError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import type { JobRun } from "@leasehold/jobs";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  openTransferRuns,
  runTransfer,
  type TransferJob,
  transferOrders,
} from "../../functions/import-orders/job.ts";
import { pendingKey, transferKey } from "../../functions/import-orders/schema.ts";
import { OrderTransfer } from "../../functions/import-orders/transfer.ts";
import { KeyNotAllowedError } from "../../functions/support/input.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

const minute = 60_000;
const anyTime = (): number => minute;

let tables: SystemTables | undefined;
let system: SystemTables;
let clock: ManualClock;
let locks: MemoryLeaseStore;

/** Orders of three chunks, two to a chunk. */
async function seed(chunks: readonly string[] = ["1", "2", "3"]): Promise<void> {
  for (const chunk of chunks) {
    const orders = ["a", "b"].map((letter) => ({
      orderId: `${letter}${chunk}`,
      product: "mug",
      quantity: 1,
    }));
    await system.put({ ...pendingKey("import", chunk), orders });
  }
}

/** A worker with leases whose time the test moves, on a table of the real engine. */
function worker(owner: string, options: Partial<TransferJob> = {}): TransferJob {
  const leases = new LeaseClient({ store: locks, clock, owner });
  const transfer = new OrderTransfer(system.documents, system.tableName);
  return { leases, adopting: leases, transfer, remainingMs: () => 30 * minute, ...options };
}

/** Transfers in which a step goes another way. */
function otherwise(steps: Partial<TransferJob["transfer"]>): TransferJob["transfer"] {
  const transfer = new OrderTransfer(system.documents, system.tableName);
  return {
    nextChunk: (kind) => transfer.nextChunk(kind),
    transfer: (...args) => transfer.transfer(...args),
    putBack: (...args) => transfer.putBack(...args),
    ...steps,
  };
}

function logged(): unknown[] {
  return vi.mocked(console.log).mock.calls.map(([line]) => JSON.parse(String(line)) as unknown);
}

/** The history of the runs, as a later reader finds it. */
async function runs(): Promise<readonly JobRun[]> {
  return await Array.fromAsync(openTransferRuns(worker("reader").leases).runs());
}

async function doneBy(): Promise<Record<string, unknown>> {
  const items = Object.entries(await system.items());
  return Object.fromEntries(
    items.filter(([key]) => key.startsWith("done#")).map(([key, { by }]) => [key, by]),
  );
}

beforeEach(async () => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  tables ??= await makeSystemTables();
  tables.close();
  system = await makeSystemTables();
  tables = system;
  clock = new ManualClock();
  locks = new MemoryLeaseStore();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => tables?.close());

describe("the import and export of orders", () => {
  test("imports what is pending, chunk by chunk, and exports what it is asked for", async () => {
    await seed();
    // An order goes to its own key, whatever its fields say.
    await system.put({ ...pendingKey("import", "4"), orders: [{ orderId: "odd", pk: "gate", sk: "other" }] });
    expect(await runTransfer(worker("A"), "import")).toMatchObject({
      result: "ran",
      chunks: 4,
      isUnfinished: false,
    });
    await system.put({ ...pendingKey("export", "e"), orderIds: ["b1", "a3", "odd", "unknown"] });
    expect(await runTransfer(worker("A"), "export")).toMatchObject({ result: "ran", chunks: 1 });
    const items = await system.items();
    expect(items["orders/a2"]).toMatchObject({ orderId: "a2", product: "mug", by: "A" });
    expect(items["done#export/e"]?.orders).toEqual([
      { orderId: "a3", product: "mug", quantity: 1 },
      { orderId: "b1", product: "mug", quantity: 1 },
      { orderId: "odd" },
    ]);
    expect(Object.keys(items).filter((key) => key.startsWith("pending#"))).toEqual([]);
  });

  test("an export waits for no import that runs: it skips, and says who is at it", async () => {
    await worker("A").leases.acquire(transferKey, { leaseDurationMs: 30 * minute });
    expect(await runTransfer(worker("B"), "export")).toMatchObject({ result: "skipped", holder: "A" });
  });

  test("A runs 32 minutes on a lease of 30: B takes over, A's late write is fenced off, its late release touches nothing", async () => {
    await seed();
    const transfer = new OrderTransfer(system.documents, system.tableName);
    const b = worker("B");
    const a = worker("A", {
      transfer: otherwise({
        transfer: async (kind, chunk, lease) => {
          if (chunk === "2") {
            // A's second chunk is under way for 32 minutes. B comes at 30, and does that chunk alone.
            await clock.advance(30 * minute + 1_500);
            const later = await b.leases.acquire(transferKey, { leaseDurationMs: 30 * minute });
            expect(await transfer.transfer(kind, chunk, later, anyTime)).toBe("transferred");
            await clock.advance(2 * minute);
            expect(lease.held).toBe(false);
          }
          return await transfer.transfer(kind, chunk, lease, anyTime);
        },
      }),
    });
    // It finds its second chunk done, goes on to the third, which B has not come to yet, and is refused there.
    expect(await runTransfer(a, "import")).toMatchObject({ result: "lost", chunks: 1 });
    expect(await b.leases.inspect(transferKey)).toMatchObject({ owner: "B" });
    expect(await doneBy()).toEqual({ "done#import/1": "A", "done#import/2": "B" });
    const items = await system.items();
    expect(items["pending#import/3"]).toBeDefined();
    expect(items["orders/a3"]).toBeUndefined();
    expect(await runs()).toMatchObject([
      { owner: "A", state: "failed", remark: expect.stringContaining("chunk 3 was fenced off") },
    ]);
    expect(logged()).toMatchObject([{ message: "run failed" }]);
  });

  test("a run whose time is nearly over stops, and says so", async () => {
    await seed();
    let left = 10_000;
    const short = worker("A", { remainingMs: () => (left -= 3_000) });
    const outcome = await runTransfer(short, "import");
    expect(outcome).toMatchObject({ result: "ran", isUnfinished: true });
    expect(await worker("A").leases.inspect(transferKey)).toBeUndefined();
    expect(await runs()).toMatchObject([
      { state: "succeeded", remark: expect.stringContaining("unfinished") },
    ]);
  });

  test("a workflow's steps go by its handle, however old that is, and repeating one changes nothing", async () => {
    await seed();
    const workflow = worker("W");
    const lease = await workflow.leases.acquire(transferKey, { leaseDurationMs: minute, heartbeat: true });
    const handle = JSON.parse(JSON.stringify(lease));
    await clock.advance(20 * minute);

    expect(await transferOrders(worker("step"), { kind: "import", lease: handle })).toEqual({
      result: "transferred",
      chunk: "1",
    });
    const named = { kind: "import", lease: handle, chunk: "3" };
    expect(await transferOrders(worker("step"), named)).toEqual({ result: "transferred", chunk: "3" });
    expect(await transferOrders(worker("step"), named)).toEqual({ result: "alreadyDone", chunk: "3" });
    await system.put({ ...pendingKey("import", "odd") });
    const step = (): Promise<unknown> => transferOrders(worker("step"), { kind: "import", lease: handle });
    expect(await step()).toMatchObject({ chunk: "2" });
    expect(await step()).toEqual({ result: "parked", chunk: "odd" });
    expect(await step()).toEqual({ result: "nothingLeft" });
    expect(await doneBy()).toMatchObject({ "done#import/2": "W" });
  });

  test("a step of a workflow that lost its lock is refused by name", async () => {
    await seed();
    const handle = (await worker("W").leases.acquire(transferKey, { leaseDurationMs: minute })).toJSON();
    await clock.advance(minute + 1_500);
    await runTransfer(worker("B", { remainingMs: () => 30 * minute }), "import");
    await system.put({ ...pendingKey("import", "4"), orders: [] });
    await expect(transferOrders(worker("step"), { kind: "import", lease: handle })).rejects.toBeInstanceOf(
      LeaseLostError,
    );
    expect((await system.items())["pending#import/4"]).toBeDefined();
  });

  test.each([
    [
      "import",
      "orders",
      [{ orderId: "a" }, { orderId: "b" }, { orderId: "a" }],
      'it names the order "a" twice',
    ],
    ["export", "orderIds", ["a", "b", "a"], 'it names the order "a" twice'],
    ["import", "orders", [{ orderId: "a" }, {}], "it has no orderId at 1"],
    ["export", "orderIds", ["a", 7], "it has no orderId at 1"],
    ["import", "orders", undefined, "it has no list of at most 90 orders"],
    [
      "import",
      "orders",
      Array.from({ length: 91 }, (_, index) => ({ orderId: `o${index}` })),
      "it has no list of at most 90 orders",
    ],
    ["import", "orders", [{ orderId: "o".repeat(1_025) }], "DynamoDB refuses it"],
    ["export", "orderIds", ["o".repeat(1_025)], "DynamoDB refuses it"],
  ] as const)(
    "a chunk to %s whose %s cannot be one transaction is parked with the reason, and those after it are moved (%#)",
    async (kind, field, list, problem) => {
      const odd = { ...pendingKey(kind, "1-odd"), ...(list === undefined ? {} : { [field]: list }) };
      await system.put(odd);
      await system.put({ ...pendingKey(kind, "2"), orders: [{ orderId: "z" }], orderIds: ["z"] });
      expect(await runTransfer(worker("A"), kind)).toMatchObject({
        result: "ran",
        chunks: 1,
        parked: 1,
        isUnfinished: false,
      });
      const items = await system.items();
      expect(items[`parked#${kind}/1-odd`]).toMatchObject({
        problem: expect.stringContaining(problem),
        by: "A",
        fencingToken: expect.any(Number),
        item: odd,
      });
      expect(Object.keys(items).filter((key) => key.startsWith("pending#"))).toEqual([]);
      expect(items[`done#${kind}/2`]).toMatchObject({ by: "A" });
      expect(logged()).toMatchObject([{ message: "chunk parked", kind, chunk: "1-odd" }]);
    },
  );

  test("a parked chunk is put back as it was, once, never over one of its name that waits, and a run takes it", async () => {
    await system.put({ ...pendingKey("import", "odd"), from: "a file" });
    await runTransfer(worker("A"), "import");
    const putBack = (): Promise<unknown> => transferOrders(worker("A"), { kind: "import", putBack: "odd" });
    const corrected = { ...pendingKey("import", "odd"), orders: [{ orderId: "a" }] };
    await system.put(corrected);
    expect(await putBack()).toEqual({ chunk: "odd", isPutBack: false });
    expect(await system.items()).toMatchObject({
      "parked#import/odd": {},
      "pending#import/odd": { orders: corrected.orders },
    });
    expect(await runTransfer(worker("A"), "import")).toMatchObject({ chunks: 1, parked: 0 });
    expect(await putBack()).toEqual({ chunk: "odd", isPutBack: true });
    expect(await putBack()).toEqual({ chunk: "odd", isPutBack: false });
    expect(await system.items()).toMatchObject({ "pending#import/odd": { from: "a file" } });
  });

  test("a chunk that was parked anew since it was read is not put back as it was before", async () => {
    await system.put({ ...pendingKey("import", "odd"), from: "a file" });
    await runTransfer(worker("A"), "import");
    const { documents, tableName } = system;
    const read = documents.send.bind(documents);
    // The process that puts it back is frozen after its read, before its write.
    vi.spyOn(documents, "send").mockImplementationOnce(async (command) => {
      const answer = await read(command);
      await transferOrders(worker("A"), { kind: "import", putBack: "odd" });
      await system.put({ ...pendingKey("import", "odd"), from: "another file" });
      await runTransfer(worker("A"), "import");
      return answer;
    });
    expect(await new OrderTransfer(documents, tableName).putBack("import", "odd", anyTime)).toBe(false);
    expect((await system.items())["parked#import/odd"]?.item).toMatchObject({ from: "another file" });
  });

  test("a holder that was taken over parks nothing", async () => {
    await system.put({ ...pendingKey("import", "odd") });
    const a = worker("A");
    const late = await a.leases.acquire(transferKey, { leaseDurationMs: minute });
    await clock.advance(2 * minute);
    await system.put({ ...pendingKey("import", "1"), orders: [{ orderId: "a" }] });
    const later = await worker("B").leases.acquire(transferKey);
    expect(await a.transfer.transfer("import", "1", later, anyTime)).toBe("transferred");
    expect(await a.transfer.transfer("import", "odd", late, anyTime)).toBe("fencedOff");
    expect(Object.keys(await system.items())).toContain("pending#import/odd");
  });

  test("a run with a timeout stops in time, and its lease is as long: another run takes over from then on", async () => {
    await seed();
    const slow = worker("A");
    const { transfer } = slow;
    const job = {
      ...slow,
      transfer: otherwise({
        transfer: async (...args) => {
          await clock.advance(9_000);
          return await transfer.transfer(...args);
        },
      }),
    };
    const asked = transferOrders(job, { kind: "import", timeoutMs: 10_000 });
    expect(await asked).toMatchObject({ result: "ran", chunks: 1, isUnfinished: true });

    const stuck = worker("B", { transfer: otherwise({ transfer: () => new Promise(() => undefined) }) });
    void transferOrders(stuck, { kind: "import", timeoutMs: 10_000 });
    await vi.waitFor(async () => {
      expect(await stuck.leases.inspect(transferKey)).toMatchObject({ owner: "B", leaseDurationMs: 10_000 });
    });
    await clock.advance(11_500);
    expect(await runTransfer(worker("C"), "import")).toMatchObject({ result: "ran", chunks: 2 });
  });

  describe("in the run history", () => {
    test("each run has its entry, by the time at which it got the lock, also two within one millisecond", async () => {
      await seed();
      await runTransfer(worker("A"), "import");
      await runTransfer(worker("B"), "export");
      expect(await runs()).toMatchObject([
        {
          slot: new Date(clock.now()).toISOString(),
          state: "succeeded",
          owner: "A",
          progress: { kind: "import", chunks: 3 },
        },
        {
          slot: new Date(clock.now() + 1).toISOString(),
          state: "succeeded",
          owner: "B",
          progress: { kind: "export", chunks: 0 },
        },
      ]);
      expect(logged()).toEqual([]);
    });

    test("a run that fails is there with its error and what it had done, and is logged for the alarm", async () => {
      await seed(["1", "2"]);
      const { transfer } = worker("A");
      const failing = otherwise({
        transfer: async (...args) => {
          if (args[1] === "2") throw new Error("the file is gone");
          return await transfer.transfer(...args);
        },
      });
      const running = runTransfer(worker("A", { transfer: failing }), "import");
      await expect(running).rejects.toThrow("the file is gone");
      const [run, ...others] = await runs();
      expect(others).toEqual([]);
      expect(run).toMatchObject({ state: "failed", progress: { kind: "import", chunks: 1 } });
      expect(run?.remark).toMatch(/the file is gone/);
      expect(logged()).toMatchObject([{ message: "run failed", job: transferKey, slot: run?.slot }]);
    });

    test("a run that dies shows as lost when its lease has ended; one that is skipped leaves nothing", async () => {
      const dying = worker("A", {
        transfer: otherwise({ nextChunk: () => new Promise(() => undefined) }),
      });
      void runTransfer(dying, "import");
      await vi.waitFor(async () => expect(await runs()).toMatchObject([{ state: "running", owner: "A" }]));
      expect(await runTransfer(worker("B"), "import")).toMatchObject({ result: "skipped" });
      clock = new ManualClock(clock.now() + 31 * minute);
      expect(await runs()).toMatchObject([{ state: "lost", owner: "A" }]);
    });

    test("a workflow's run is there at its end: once, when a step finds nothing left, and when a step fails", async () => {
      const workflow = worker("W");
      const lease = (await workflow.leases.acquire(transferKey)).toJSON();
      const slot = new Date(lease.acquiredAt).toISOString();
      await seed(["1"]);
      const step = (): Promise<unknown> => transferOrders(worker("step"), { kind: "import", lease });
      await step();
      expect(await runs()).toEqual([]);
      await step();
      await step();
      expect(await runs()).toMatchObject([
        { slot, state: "succeeded", attempt: 1, progress: { kind: "import" } },
      ]);
      expect(logged()).toEqual([]);

      await clock.advance(minute);
      const next = (await workflow.leases.acquire(transferKey)).toJSON();
      const job = worker("step", {
        transfer: otherwise({ nextChunk: () => Promise.reject(new Error("the table is gone")) }),
      });
      const failing = transferOrders(job, { kind: "import", lease: next });
      await expect(failing).rejects.toThrow("the table is gone");
      expect((await runs()).at(-1)).toMatchObject({
        slot: new Date(next.acquiredAt).toISOString(),
        state: "failed",
        remark: expect.stringContaining("the table is gone"),
      });
      expect(logged()).toMatchObject([{ message: "run failed" }]);
    });
  });

  test("refuses what makes no sense, and changes nothing", async () => {
    const lease = (await worker("W").leases.acquire("another lock")).toJSON();
    const ask = (event: unknown): Promise<unknown> => transferOrders(worker("step"), event);
    await expect(ask({ kind: "import", lease })).rejects.toBeInstanceOf(KeyNotAllowedError);
    for (const event of [
      undefined,
      {},
      { kind: "delete" },
      { kind: "import", chunk: "1" },
      { kind: "import", lease: {} },
      { kind: "import", lease, waitMs: 1 },
      { kind: "import", timeoutMs: 2_999 },
      { kind: "import", lease, timeoutMs: 60_000 },
      { kind: "import", putBack: "1", waitMs: 1 },
      { kind: "import", rows: [] },
    ]) {
      await expect(ask(event)).rejects.toBeInstanceOf(InvalidOptionsError);
    }
    expect(await system.items()).toEqual({});
  });
});
