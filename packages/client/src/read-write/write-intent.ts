import type { ClientInternals } from "../client-internals.ts";
import { Acquirer } from "../protocol/acquirer.ts";
import { inBackground } from "../protocol/context.ts";
import type { HeldLease } from "../protocol/held-lease.ts";
import { RetryLoop } from "../protocol/wait-loop.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
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
  // No event tells of an intent: nobody holds the lock by it.
  const acquirer = new Acquirer({
    ...context,
    publish: (event) => event.type === "error" && context.publish(event),
    noteLease: () => undefined,
  });
  const leaseDurationMs = Math.max(intentLeaseMs, times.shortestLeaseMs);
  const lease = { leaseDurationMs, heartbeatMs: Math.floor(leaseDurationMs / 3), lockAtLeastForMs: 0 };
  const plain = { data: undefined, reentrant: false, resumes: false, waitMs: 0, signal: undefined };
  return {
    begin: (_, form, call) => ({
      form,
      grant: async (attempt, onContended) => {
        const own = new WriteIntent(
          () => acquirer.acquire({ ...call, ...lease, ...plain, order: undefined }, intent),
          inBackground(context, {
            key: call.key,
            sortKey: call.sortKey,
            owner: call.owner,
            operation: "renew",
          }),
        );
        try {
          return await new RetryLoop(context, form, call).grant(attempt, (blocker) => {
            onContended(blocker);
            own.begin();
          });
        } finally {
          own.end();
        }
      },
    }),
  };
}

/** One waiting writer's intent: taken and given up in the background, for the writer does not depend on it. */
class WriteIntent {
  readonly #acquire: () => Promise<HeldLease>;
  readonly #failed: (error: unknown) => void;
  #isWanted = false;
  #lease: HeldLease | undefined;

  constructor(acquire: () => Promise<HeldLease>, failed: (error: unknown) => void) {
    this.#acquire = acquire;
    this.#failed = failed;
  }

  begin(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    void this.#take();
  }

  end(): void {
    this.#isWanted = false;
    this.#lease?.letGo();
  }

  async #take(): Promise<void> {
    try {
      const lease = await this.#acquire();
      this.#lease = lease;
      if (!this.#isWanted) return lease.letGo();
      // A process that was frozen for longer has lost it.
      lease.onEnd(() => {
        if (this.#isWanted) void this.#take();
      });
    } catch (error) {
      // The next holder that the writer meets lets it try again.
      this.#isWanted = false;
      this.#failed(error);
    }
  }
}
