import type { LeaseUnavailableError } from "../errors/errors.ts";
import { permitsOf } from "../expressions-semaphore.ts";
import { type LookOptions, lookAtAll } from "../looks.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { claimableIn, ExpiryDetector } from "../protocol/expiry-detector.ts";
import type { LeaseRecord } from "../record.ts";
import { permitNumber } from "../schema-semaphore.ts";
import { type Holding, Survey } from "./survey.ts";

/** Looks at all permits of one semaphore, and remembers what helps to read the next look. */
export class PermitWatch {
  readonly #context: ProtocolContext;
  readonly #key: string;
  readonly #permits: number;
  readonly #detector: ExpiryDetector;
  /** Permits that could not be taken over although their time seemed to be up, and when another attempt makes sense. */
  readonly #refusals = new Map<number, { readonly expiresAt: number; readonly until: number }>();

  constructor(context: ProtocolContext, key: string, permits: number) {
    this.#context = context;
    this.#key = key;
    this.#permits = permits;
    this.#detector = new ExpiryDetector(context.clock, context.clockSkewMs);
  }

  /** Reads the leases of all permits that have not been released: 1 request for each megabyte. */
  async read(look: LookOptions): Promise<LeaseRecord[]> {
    const records = await lookAtAll(this.#context, permitsOf(this.#key), look);
    return records.filter(({ sortKey }) => permitNumber(sortKey) !== undefined);
  }

  /** Whether there are leases of permits beyond N, be their holders alive or not. */
  hasBeyond(records: readonly LeaseRecord[]): boolean {
    return records.some(({ sortKey }) => (permitNumber(sortKey) ?? 0) >= this.#permits);
  }

  /** Judges what an answer has just brought. */
  survey(records: readonly LeaseRecord[]): Survey {
    const now = this.#context.clock.monotonic();
    const holdings = records.map((record): Holding => {
      const permit = permitNumber(record.sortKey) ?? this.#permits;
      const { owner, expiresAt, inCooldown, reentrant } = record;
      const claimableAt = now + claimableIn(this.#detector.judge(record));
      const refusal = this.#refusals.get(permit);
      const isSame = refusal?.expiresAt === expiresAt;
      return {
        permit,
        owner,
        expiresAt,
        inCooldown,
        reentrant,
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
