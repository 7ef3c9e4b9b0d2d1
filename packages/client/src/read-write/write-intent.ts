import type { ClientInternals } from "../client-internals.ts";
import { checkHeartbeat } from "../options/check-options.ts";
import { Acquirer } from "../protocol/acquirer.ts";
import { inBackground } from "../protocol/context.ts";
import type { HeldLease } from "../protocol/held-lease.ts";
import { RetryLoop } from "../protocol/wait-loop.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import type { LeaseRecord } from "../record.ts";
import type { SeatForm } from "../seats/seat-form.ts";

/** A writer that dies while it waits keeps new readers out for no longer than this, and the allowance for skew. */
const intentLeaseMs = 10_000;

/**
 * How a writer without an order waits: when it meets a holder, it takes an intent, which keeps new readers out.
 *
 * So it waits for the readers that were there before it, and readers that come later cannot starve it. That alone
 * rests on the intent; that a writer is alone rests on the bounds of its own seat.
 */
export function writerFirst({ context, times }: ClientInternals, intent: SeatForm): WaitOrder {
  // No event and no trace tells of an intent: nobody holds the lock by it.
  const acquirer = new Acquirer({
    ...context,
    publish: (event) => event.type === "error" && context.publish(event),
    noteLease: () => undefined,
  });
  const leaseDurationMs = Math.max(intentLeaseMs, times.shortestLeaseMs);
  const heartbeatMs = checkHeartbeat(true, leaseDurationMs);
  const terms = { leaseDurationMs, heartbeatMs, lockAtLeastForMs: 0, data: undefined, order: undefined };
  const plain = { ...terms, reentrant: false, resumes: false };
  return {
    begin: (_, form, call) => ({
      form,
      grant: async (attempt, onContended) => {
        const { key, sortKey, owner } = call;
        const failed = inBackground(context, { key, sortKey, owner, operation: "renew" });
        const over = new AbortController();
        const wanted = { ...call, ...plain, signal: over.signal };
        let held: HeldLease | undefined;
        // In the background, for the writer does not depend on it.
        const take = async (): Promise<void> => {
          const before = held;
          held = await acquirer.acquire(wanted, intent, false);
          // It has ended here, but a renewal without an answer may have prolonged it in the table.
          before?.letGo();
          if (over.signal.aborted) held.letGo();
          // A process that was frozen for longer has lost it.
          else held.onEnd(begin);
        };
        const begin = (): void => {
          take().catch(failed);
        };
        let hasBegun = false;
        const meet = (blocker: LeaseRecord): void => {
          onContended(blocker);
          if (!hasBegun) begin();
          hasBegun = true;
        };
        try {
          return await new RetryLoop(context, form, call).grant(attempt, meet);
        } finally {
          over.abort();
          held?.letGo();
        }
      },
    }),
  };
}
