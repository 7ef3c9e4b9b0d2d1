/** A run of the job that is asked to stop between two orders. */
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, test } from "vitest";
import { closeOrdersUnder } from "../../functions/close-unpaid-orders/job.ts";
import type { OrderBook } from "../../functions/close-unpaid-orders/orders.ts";

test("closes no other order, and rejects with the reason", async () => {
  const client = new LeaseClient({ store: new MemoryLeaseStore(), clock: new ManualClock() });
  const lease = await client.acquire("close-unpaid-orders");
  const stop = new AbortController();
  const reason = new Error("the environment shuts down");
  const closed: string[] = [];
  const orders = {
    async *unpaid() {
      for (const orderId of ["1", "2", "3"]) yield { orderId };
    },
    async close({ orderId }: { readonly orderId: string }) {
      closed.push(orderId);
      if (orderId === "2") stop.abort(reason);
      return "closed" as const;
    },
  } as unknown as OrderBook;
  const run = closeOrdersUnder(lease, { orders, remainingMs: () => 60_000 }, 0, stop.signal);
  await expect(run).rejects.toBe(reason);
  expect(closed).toEqual(["1", "2"]);
  expect(lease.held).toBe(true);
});
