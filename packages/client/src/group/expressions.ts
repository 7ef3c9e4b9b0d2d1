/**
 * The expressions of leases that are acquired together: the single lease's own, joined to one transaction.
 *
 *     acquire   each lock is free, or its record is still the one that was judged; and the fencing token is a new
 *               maximum on each of them
 */
import { acquire, type Grant, takeOver } from "../expressions.ts";
import { attributeNames } from "../schema.ts";
import type { TransactionEntry } from "../store.ts";

const { fence } = attributeNames;

/** How a single grant counts its fencing token on. */
const countedOn = `if_not_exists(#${fence}, :acquiredAt) + :one`;
const isNewMaximum = `(attribute_not_exists(#${fence}) OR #${fence} < :fence)`;

/**
 * Takes one lock of several: from nobody, or from the record that was judged.
 *
 * A transaction answers without its items, so that a number that the service counts would have to be read
 * afterwards. This one is chosen beforehand, and refused unless it is larger than every earlier one of the lock.
 */
export function acquireAmongOthers(
  grant: Grant,
  judged: { readonly token: string; readonly version: number } | undefined,
  fencingToken: number,
): TransactionEntry {
  const { key, update, condition, names, values } = judged ? takeOver(grant, judged) : acquire(grant);
  const { ":one": _counted, ...others } = values;
  return {
    key,
    condition: `${condition} AND ${isNewMaximum}`,
    names,
    values: { ...others, ":fence": fencingToken },
    action: { update: update.replace(countedOn, ":fence") },
  };
}
