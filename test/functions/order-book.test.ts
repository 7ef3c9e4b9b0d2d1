import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { type CloseResult, type FoundOrder, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";

const order: FoundOrder = {
  orderId: "o-1",
  item: { pk: "orders#open", sk: "o-1", orderId: "o-1", lines: [{ product: "mug", quantity: 1 }], dueAt: 0 },
};

/** Closes an order in a table that answers each transaction with the next of these cancellations, then with success. */
async function close(...cancellations: readonly string[][]): Promise<{ result: CloseResult; sent: number }> {
  const left = [...cancellations];
  let sent = 0;
  const send = async (): Promise<object> => {
    sent += 1;
    const codes = left.shift();
    if (codes === undefined) return {};
    const CancellationReasons = codes.map((Code) => ({ Code }));
    throw new TransactionCanceledException({ message: codes.join(), $metadata: {}, CancellationReasons });
  };
  const orders = new OrderBook({ send } as unknown as DynamoDBDocumentClient, "shop");
  await using lease = await new LeaseClient({ store: new MemoryLeaseStore() }).acquire("close");
  return { result: await orders.close(order, lease, () => 60_000), sent };
}

const passed = "None";
const failed = "ConditionalCheckFailed";
const collided = "TransactionConflict";

describe("OrderBook.close", () => {
  it("is fenced off when the lease is gone, whatever became of the order", async () => {
    expect(await close([failed, passed, passed, passed])).toEqual({ result: "fencedOff", sent: 1 });
    expect(await close([failed, failed, passed, passed])).toEqual({ result: "fencedOff", sent: 1 });
    expect(await close([failed, collided, passed, passed])).toEqual({ result: "fencedOff", sent: 1 });
  });

  it("finds an order that is not open any more", async () => {
    expect(await close([passed, failed, passed, passed])).toEqual({ result: "notOpen", sent: 1 });
  });

  it("tries again after a collision with another request", async () => {
    const onTheLease = [collided, passed, passed, passed];
    const onTheStock = [passed, passed, passed, collided];
    expect(await close(onTheLease, onTheStock)).toEqual({ result: "closed", sent: 3 });
    expect(await close(onTheLease, [failed, passed, passed, passed])).toEqual({
      result: "fencedOff",
      sent: 2,
    });
  });

  it("parks an order whose stock refuses it, in a transaction of its own; under a lease that is gone, it does not", async () => {
    expect(await close([passed, passed, passed, failed])).toEqual({ result: "parked", sent: 2 });
    expect(await close([passed, passed, passed, failed], [failed, passed, passed])).toEqual({
      result: "fencedOff",
      sent: 2,
    });
    expect(await close([passed, passed, passed, failed], [passed, failed, passed])).toEqual({
      result: "notOpen",
      sent: 2,
    });
  });
});
