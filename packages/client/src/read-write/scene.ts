import type { ClientInternals } from "../client-internals.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import { isReaderPlace } from "../schema-read-write.ts";
import type { Obstacle, Participants } from "./participants.ts";
import type { ReaderPlaces } from "./reader-places.ts";

/** What the callers of one ReadWriteLock object share. */
export interface Scene {
  readonly key: string;
  readonly client: ClientInternals;
  readonly participants: Participants;
  readonly places: ReaderPlaces;
}

/** The refusal of a caller that one or several stand in the way of; it tells of the one that stays longest. */
export function unavailable(
  { key, client }: Scene,
  obstacles: readonly Obstacle[],
  waitedMs: number,
): LeaseUnavailableError {
  const now = client.context.clock.monotonic();
  const longest = longestOf(obstacles);
  const retryAfterMs = Math.max(0, Math.ceil((longest?.claimableAt ?? now) - now));
  const kind = longest !== undefined && isReaderPlace(longest.record.sortKey) ? "read" : "write";
  const what = `the ${kind} lock of ${JSON.stringify(key)} is`;
  return new LeaseUnavailableError(key, longest?.record, retryAfterMs, { what, waitedMs });
}

/** The obstacle that could stay longest. */
export function longestOf(obstacles: readonly Obstacle[]): Obstacle | undefined {
  return obstacles.reduce<Obstacle | undefined>(
    (longest, one) => (longest && longest.claimableAt >= one.claimableAt ? longest : one),
    undefined,
  );
}
