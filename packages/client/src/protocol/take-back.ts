import type { Write } from "../statements/statement.ts";
import type { Item, UpdateResult } from "../store.ts";
import type { ProtocolContext } from "./context.ts";

/** What takes back a grant whose answer never came. */
export interface TakingBack {
  /** Ends the lease where it is there; refused where another's is in the way. */
  readonly cancel: Write;
  /** Revokes the token beside another's lease, so that a late grant is refused; undefined where none can come. */
  readonly revoke: Write | undefined;
  /** Whether an item shows the lease. */
  readonly isOurs: (item: Item | undefined) => boolean;
}

/**
 * Takes back a grant whose write may have landed, may be under way or may be lost: 1 request, 2 where another's lease is
 * in the way, 3 where the item changes meanwhile.
 *
 * Gives what came of the last cancellation; undefined where the token was revoked before its grant landed.
 */
export function takeBack(
  { gate, table }: Pick<ProtocolContext, "gate" | "table">,
  { cancel, revoke, isOurs }: TakingBack,
): Promise<UpdateResult | undefined> {
  return gate.giveBack(async () => {
    const cancelled = await table.update(cancel);
    if (cancelled.applied || revoke === undefined) return cancelled;
    const revoked = await table.update(revoke);
    if (revoked.applied && !isOurs(revoked.item)) return undefined;
    // The grant has landed just now, or the other lease has gone.
    return await table.update(cancel);
  });
}
