import type { LeaseUnavailableError } from "../errors.ts";
import { permitsOf } from "../expressions-semaphore.ts";
import { callBudgetMs, type ProtocolContext } from "../protocol/context.ts";
import { claimableIn, Judge } from "../protocol/judge.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import type { ItemKey } from "../schema.ts";
import { permitNumber } from "../schema-semaphore.ts";
import { withBudget } from "../time/budget.ts";
import type { ClockOffset } from "../time/skew.ts";
import { type Holding, Survey } from "./survey.ts";

/** What is presumed where a read's answer does not vouch for a clock. An attempt that follows meets one that does, or does not. */
export const presumedOffset: ClockOffset = { minMs: 0, maxMs: 0 };

/** How one look is made. */
export interface LookOptions {
  /** A consistent look sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
  /** @default 10000 */
  readonly budgetMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Looks at all permits of one semaphore, and remembers what helps to read the next look. */
export class PermitWatch {
  readonly #context: ProtocolContext;
  readonly #key: string;
  readonly #permits: number;
  readonly #judge: Judge;
  /** Permits that could not be taken over although their time seemed to be up, and when another attempt makes sense. */
  readonly #refusals = new Map<number, { readonly expiresAt: number; readonly until: number }>();

  constructor(context: ProtocolContext, key: string, permits: number) {
    this.#context = context;
    this.#key = key;
    this.#permits = permits;
    this.#judge = new Judge(context.clock, context.clockSkewMs);
  }

  /** Reads the leases of all permits that have not been released: 1 request for each megabyte. */
  async read({ consistent, budgetMs = callBudgetMs, signal }: LookOptions): Promise<LeaseRecord[]> {
    const { clock, store } = this.#context;
    const records: LeaseRecord[] = [];
    let after: ItemKey | undefined;
    do {
      const request = { ...permitsOf(this.#key), consistent, ...(after === undefined ? {} : { after }) };
      const page = await withBudget(clock, budgetMs, signal, (call) => store.query(request, call));
      for (const item of page.items) {
        const record = readRecord(item);
        if (record !== undefined && permitNumber(record.place) !== undefined) records.push(record);
      }
      after = page.next;
    } while (after !== undefined);
    return records;
  }

  /** Whether there are leases of permits beyond N, be their holders alive or not. */
  hasBeyond(records: readonly LeaseRecord[]): boolean {
    return records.some(({ place }) => (permitNumber(place) ?? 0) >= this.#permits);
  }

  /** Judges what an answer has just brought. */
  survey(records: readonly LeaseRecord[]): Survey {
    const now = this.#context.clock.monotonic();
    const holdings = records.map((record): Holding => {
      const permit = permitNumber(record.place) ?? this.#permits;
      const { owner, expiresAt, closed } = record;
      const claimableAt = now + claimableIn(this.#judge.judge(record, presumedOffset));
      const refusal = this.#refusals.get(permit);
      const isSame = refusal?.expiresAt === expiresAt;
      return {
        permit,
        owner,
        expiresAt,
        closed,
        claimableAt: isSame ? Math.max(claimableAt, refusal.until) : claimableAt,
      };
    });
    return new Survey(this.#permits, holdings);
  }

  /** Takes note of a refused attempt, so that looks do not bring the same attempt about again and again. */
  note(permit: number, { expiresAt, retryAfterMs }: LeaseUnavailableError): void {
    if (expiresAt === undefined) this.#refusals.delete(permit);
    else {
      this.#refusals.set(permit, { expiresAt, until: this.#context.clock.monotonic() + retryAfterMs });
    }
  }
}
