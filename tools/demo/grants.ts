import type { Instances } from "./instances.ts";
import { type Grant, grantsIn } from "./lease-history.ts";
import type { LoggedLeaseEvent } from "./lease-log.ts";
import type { Stage } from "./scenario.ts";

/**
 * Reads the grants under a key as the table made them, with the names of instances as owners.
 *
 * Waits until the table's stream shows every lease that an instance has told of: a stream may come a moment later.
 */
export async function readGrants(
  { tempo, history }: Stage,
  instances: Instances,
  key: string,
  log: readonly LoggedLeaseEvent[],
): Promise<Grant[]> {
  const told = log.flatMap(({ event }) => (event.type === "acquired" && event.key === key ? [event] : []));
  const grants = await tempo.until("the table's stream to show every lease", async () => {
    const found = grantsIn(await history(), key);
    const shown = new Set(found.map(({ sortKey, fencingToken }) => `${fencingToken} ${sortKey}`));
    return told.every(({ sortKey, fencingToken }) => shown.has(`${fencingToken} ${sortKey}`))
      ? found
      : undefined;
  });
  return grants.map((grant) => ({
    ...grant,
    owner: instances.nameOf(grant.owner),
    from: grant.from && { ...grant.from, owner: instances.nameOf(grant.from.owner) },
  }));
}
