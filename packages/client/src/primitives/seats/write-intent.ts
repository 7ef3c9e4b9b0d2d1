import { checkHeartbeat } from "../../base/check-options.ts";
import type { LeaseEvent } from "../../base/events.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { acquireLease } from "../../core/acquire.ts";
import { inBackground } from "../../core/attempt.ts";
import type { Core } from "../../core/core.ts";
import type { HeldLease } from "../../core/held-lease.ts";
import type { Order } from "../../core/order.ts";
import { unordered } from "../../core/wait-loop.ts";
import type { SeatForm } from "./seat-form.ts";

/** A writer that dies while it waits keeps new readers out for at most this time, and the allowance for skew. */
const intentLeaseMs = 10_000;

/**
 * The wait of a writer without an order: when it meets a holder, it takes an intent, which keeps new readers out.
 *
 * So it waits only for earlier readers, and later readers cannot starve it. Only that depends on the intent; a writer
 * is alone because of its own seat's limits.
 */
export function writerFirst({ times }: Core, seat: SeatForm): Order {
  // Nobody holds the lock by an intent: it is no event, and no trace.
  const intent = Object.assign(seat, { mutes: ({ type }: LeaseEvent) => type !== "error" });
  const leaseDurationMs = Math.max(intentLeaseMs, times.shortestLeaseMs);
  const heartbeatMs = checkHeartbeat(true, leaseDurationMs);
  const terms = { leaseDurationMs, heartbeatMs, lockAtLeastForMs: 0, data: undefined, order: undefined };
  const plain = { ...terms, reentrant: false, resumes: false };
  return {
    begin: (core, form, call) => ({
      form,
      grant: async (attempt, onContended) => {
        const { key, sortKey, owner } = call;
        const failed = inBackground(core, { key, sortKey, owner, operation: "renew" });
        const over = new AbortController();
        const wanted = { ...call, ...plain, signal: over.signal };
        let held: HeldLease | undefined;
        // In the background: the writer does not depend on it.
        const take = async (): Promise<void> => {
          const before = held;
          held = await acquireLease(core, wanted, intent, false);
          // The intent has ended here, but an unanswered renewal may have prolonged it in the table.
          before?.letGo();
          if (over.signal.aborted) held.letGo();
          // A process that was frozen for longer than the lease has lost it.
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
          return await unordered.begin(core, form, call).grant(attempt, meet);
        } finally {
          over.abort();
          held?.letGo();
        }
      },
    }),
  };
}
