import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import type { Context } from "aws-lambda";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { onSchedule, type ScheduledJob } from "../../functions/close-unpaid-orders/handler.ts";
import { closeUnpaidOrdersKey } from "../../functions/close-unpaid-orders/job.ts";
import { type CloseResult, type Order, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";

const tick = "2026-03-01T10:00:00.000Z";
const orders: Order[] = ["o-1", "o-2"].map((orderId) => ({ orderId, product: "mug", quantity: 1, dueAt: 0 }));

/** The orders of a shop in memory, each of which closes once. */
class ShelvedOrders extends OrderBook {
  readonly asked: number[] = [];
  readonly closed: string[] = [];
  readonly results: CloseResult[] = [];

  override async *unpaid(dueBefore: number): AsyncGenerator<Order, void, undefined> {
    this.asked.push(dueBefore);
    yield* orders.filter(({ orderId }) => !this.closed.includes(orderId));
  }

  override async close({ orderId }: Order): Promise<CloseResult> {
    const result = this.results.shift() ?? "closed";
    if (result === "closed") this.closed.push(orderId);
    return result;
  }
}

let clock: ManualClock;
let store: MemoryLeaseStore;
let book: ShelvedOrders;

function instance(options: Partial<ScheduledJob> = {}): (event: unknown) => Promise<unknown> {
  const handle = onSchedule({ leases: new LeaseClient({ store, clock }), orders: book, ...options });
  const context = {
    awsRequestId: crypto.randomUUID(),
    functionName: "close-unpaid-orders",
    getRemainingTimeInMillis: () => 60_000,
  } as Context;
  return (event) => handle(event as object, context);
}

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  clock = new ManualClock();
  store = new MemoryLeaseStore();
  book = new ShelvedOrders({} as never, "shop");
});

describe("the schedule that closes unpaid orders", () => {
  test("closes what was due before the scheduled time, and not before the trigger's arrival", async () => {
    expect(await instance()({ job: "j", scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
    expect(book.asked).toEqual([Date.parse(tick)]);
  });

  test("takes an EventBridge rule's time too", async () => {
    expect(await instance()({ time: tick })).toMatchObject({ result: "ran", closed: 2 });
  });

  test("a trigger that comes twice runs once", async () => {
    await instance()({ scheduledTime: tick });
    expect(await instance()({ scheduledTime: tick })).toEqual({ result: "doneBefore", slot: tick });
    expect(book.asked).toHaveLength(1);
  });

  test("while one instance runs, the others skip and name it", async () => {
    const orders = instance({
      beforeClose: async ({ orderId }, { owner }) => {
        if (orderId !== "o-1") return;
        expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "skipped", holder: owner });
      },
    });
    expect(await orders({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
    expect.assertions(2);
  });

  test("a run that loses its lease rejects and leaves its slot open, so that the retry closes the rest", async () => {
    const taken = instance({
      beforeClose: async ({ orderId }, { key, token }) => {
        if (orderId === "o-2") await new LeaseClient({ store, clock }).forceRelease(key, { token });
      },
    });
    book.results.push("closed", "fencedOff");
    await expect(taken({ scheduledTime: tick })).rejects.toMatchObject({
      code: "LEASE_LOST",
      key: closeUnpaidOrdersKey,
    });
    expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 1 });
    expect(book.closed).toEqual(["o-1", "o-2"]);
  });

  test("an error of the shop lets the lock go and leaves the slot open", async () => {
    const failing = instance({ beforeClose: () => Promise.reject(new Error("no answer")) });
    await expect(failing({ scheduledTime: tick })).rejects.toThrow("no answer");
    expect(await instance()({ scheduledTime: tick })).toMatchObject({ result: "ran", closed: 2 });
  });

  test.each([{}, { scheduledTime: "soon" }, { scheduledTime: 7 }])(
    "refuses %j, and asks for no order",
    async (event) => {
      await expect(instance()(event)).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
      expect(book.asked).toEqual([]);
    },
  );
});
