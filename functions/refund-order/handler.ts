import { type DurableLambdaHandler, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { dynamodb } from "../support/dynamodb.ts";
import { once, required } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { type RefundDesk, refund } from "./refund.ts";

const desk = once((): RefundDesk => {
  return {
    leases: leaseClient(dynamodb()),
    dynamodb: dynamodb(),
    ordersTable: required("ORDERS_TABLE_NAME"),
  };
});

/**
 * A durable function that refunds an order: `{ "orderId": "7", "amount": 12 }` → `{ "state": "refunded" }`.
 *
 * Dies at any time: the replay goes on with the same lease. See {@link refund}.
 */
export const handler: DurableLambdaHandler = withDurableExecution((event, context) =>
  refund(desk(), event, context),
);
