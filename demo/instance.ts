/** One instance of the job: a process of its own, as each Lambda environment is. Triggers come by IPC. */

import { setTimeout as delay } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { LeaseClient } from "@leasehold/client";
import {
  type CloseUnpaidOrders,
  closeUnpaidOrders,
  closeUnpaidOrdersKey,
} from "../functions/close-unpaid-orders/job.ts";
import { OrderBook } from "../functions/close-unpaid-orders/orders.ts";
import type { Answer, FromInstance, Setup, ToInstance, Trigger } from "./messages.ts";
import { times } from "./plan.ts";

let job: CloseUnpaidOrders | undefined;
let current: Trigger | undefined;
let queue: Promise<void> = Promise.resolve();
let goOn: () => void = () => undefined;

process.on("message", (message: ToInstance) => {
  switch (message.type) {
    case "setup":
      queue = queue.then(() => setUp(message.setup));
      break;
    case "trigger":
      // One after the other, as a Lambda environment takes its invocations.
      queue = queue.then(() => answer(message.trigger));
      break;
    case "goOn":
      goOn();
      break;
  }
});
// Nobody is left to work for.
process.on("disconnect", () => process.exit());

function tell(message: FromInstance): void {
  process.send?.(message);
}

async function setUp({ name, clientConfig, leaseTable, shopTable }: Setup): Promise<void> {
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient(clientConfig));
  const leases = new LeaseClient({
    tableName: leaseTable,
    dynamodb: documents,
    owner: name,
    clockSkewMs: times.clockSkewMs,
    leaseDurationMs: times.leaseDurationMs,
    onEvent: (event) => tell({ type: "leaseEvent", tick: current?.tick ?? 0, at: Date.now(), event }),
  });
  const orders = new OrderBook(documents, shopTable);
  job = {
    leases,
    orders,
    leaseDurationMs: times.leaseDurationMs,
    lockAtLeastForMs: times.lockAtLeastForMs,
    beforeClose: async (order, lease, closed) => {
      await delay(times.paceMs);
      if (current === undefined || closed !== current.holdAt) return;
      const released = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const { fencingToken, expiresAt } = lease;
      const { tick } = current;
      current = { ...current, holdAt: undefined };
      tell({ type: "holding", tick, orderId: order.orderId, closed, fencingToken, expiresAt });
      await released;
    },
  };
  // The first requests of a process cost it some tenths of a second: they are not to fall into the first tick.
  await leases.inspect(closeUnpaidOrdersKey);
  await orders.unpaid(0).next();
  tell({ type: "ready" });
}

async function answer(trigger: Trigger): Promise<void> {
  current = trigger;
  tell({ type: "answer", delivery: trigger.delivery, answer: await work(trigger) });
}

async function work(trigger: Trigger): Promise<Answer> {
  const startedAt = performance.now();
  try {
    if (job === undefined) throw new Error("the trigger came before the setup");
    const outcome = await closeUnpaidOrders(job, trigger.scheduledAt);
    return { ...outcome, tookMs: Math.round(performance.now() - startedAt) };
  } catch (error) {
    return { result: "failed", problem: String(error) };
  }
}
