import type { DurableContext } from "@aws/durable-execution-sdk-js";
import { type DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { LeaseClient } from "@leasehold/client";
import { type DurableLease, withDurableLease } from "@leasehold/durable";

/** A refund that is asked for. */
export interface RefundRequest {
  readonly orderId: string;
  readonly amount: number;
}

/** What has become of it. */
export interface Refund {
  readonly state: "refunded" | "declined";
}

/** What refunding works with. */
export interface RefundDesk {
  readonly leases: LeaseClient;
  readonly dynamodb: DynamoDBClient;
  readonly ordersTable: string;
}

const waitMs = 60 * 60 * 1000;

/**
 * Refunds an order once a person has agreed to it, which may take a week. No other execution works on the order
 * meanwhile.
 *
 * Writes to the order have the lease's fence: after the lease is lost, those of this execution are refused. Both may
 * come twice, with the same result. The person's program reads the callback from the order and completes it with
 * `"agreed"`, or anything else.
 */
export async function refund(
  { leases, dynamodb, ordersTable }: RefundDesk,
  { orderId, amount }: RefundRequest,
  context: DurableContext,
): Promise<Refund> {
  const write = async (lease: DurableLease, name: string, value: string | number): Promise<void> => {
    const fence = lease.fence({ format: "attributeValue" });
    await dynamodb.send(
      new UpdateItemCommand({
        TableName: ordersTable,
        Key: { pk: { S: orderId }, sk: { S: "order" } },
        UpdateExpression: `${fence.UpdateExpression}, #name = :value`,
        ConditionExpression: fence.ConditionExpression,
        ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#name": name },
        ExpressionAttributeValues: {
          ...fence.ExpressionAttributeValues,
          ":value": typeof value === "number" ? { N: String(value) } : { S: value },
        },
      }),
      { abortSignal: lease.signal },
    );
  };
  return await withDurableLease(context, leases, `order/${orderId}`, { waitMs }, async (lease, own) => {
    const answer = await own.waitForCallback(
      "decision",
      (callbackId) => write(lease, "decision", callbackId),
      {
        timeout: { days: 7 },
      },
    );
    if (answer !== "agreed") return { state: "declined" };
    await own.step("refund", () => write(lease, "refunded", amount));
    return { state: "refunded" };
  });
}
