import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { once, required } from "../support/environment.ts";
import { handingOnClient, leaseClient } from "../support/leases.ts";
import { type PutBack, type StepOutcome, type TransferOutcome, transferOrders } from "./job.ts";
import { tableVariable } from "./schema.ts";
import { OrderTransfer } from "./transfer.ts";

const parts = once(() => ({
  leases: leaseClient(documents()),
  adopting: handingOnClient(documents()),
  transfer: new OrderTransfer(documents(), required(tableVariable)),
}));

/**
 * Imports or exports orders, one holder at a time: as a run of its own, or as a step of a workflow that holds the lock.
 *
 * Dies before it has acquired: nothing has happened. Between two chunks, or before a chunk's transaction lands: the lock
 * frees itself when the lease ends, which is when Lambda would have ended the invocation, and the next run goes on with
 * the chunks that are pending. After the last chunk: the same, with nothing left to do. Frozen for longer than its lease:
 * its next chunk is refused at the gate, and its release touches nothing.
 */
export const handler: Answering<TransferOutcome | StepOutcome | PutBack> = answering((event, context) =>
  transferOrders({ ...parts(), remainingMs: () => context.getRemainingTimeInMillis() }, event),
);
