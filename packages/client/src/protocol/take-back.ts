import type { Write } from "../statements/statement.ts";
import type { Item, UpdateResult } from "../store.ts";
import type { ProtocolContext } from "./context.ts";

/** The writes that take back a grant whose answer was lost. */
export interface TakingBack {
  /** Removes the lease if the item has it; refused if another caller's lease is in the way. */
  readonly cancel: Write;
  /**
   * Revokes the token beside another caller's lease, so that a late grant is refused; undefined if no late grant is
   * possible.
   */
  readonly revoke: Write | undefined;
  /** Whether an item shows the lease. */
  readonly isOurs: (item: Item | undefined) => boolean;
}

/**
 * Takes back a grant whose write may have landed, may be under way or may be lost: 1 request, 2 when another caller's
 * lease is in the way, 3 when the item changes meanwhile.
 *
 * Returns the result of the last cancellation; undefined if the token was revoked before its grant landed.
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
    // Either the grant has landed just now, or the other lease has ended.
    return await table.update(cancel);
  });
}
