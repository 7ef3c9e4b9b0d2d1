// The use of a key. A lock, a semaphore and a read-write lock of one key are three independent items.

import type { LeaseClient } from "@leasehold/client";
import { coreOf, isPauseAlone, lastHolderIn } from "@leasehold/client/internal";
import { attributeNames, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

/** How a command uses a key. */
export type KeyKind = "lock" | "semaphore" | "read-write lock";

type Item = Readonly<Record<string, string | number>>;

const kinds: Readonly<Record<KeyKind, { readonly sortKey: string; readonly flags: string }>> = {
  lock: { sortKey: leaseSortKey, flags: "no such flag" },
  semaphore: { sortKey: "semaphore", flags: "--permits" },
  "read-write lock": { sortKey: "read-write", flags: "--read or --write" },
};

/**
 * Refuses a second kind of use of a key that has no item of the given kind yet. 2 reads, a third if one of them finds
 * an item. Throws a CommandError (64).
 */
export async function checkKind(client: LeaseClient, key: string, kind: KeyKind): Promise<void> {
  const core = coreOf(client);
  const isUsed = async (one: KeyKind): Promise<boolean> => {
    const itemKey = leaseItemKey(key, kinds[one].sortKey);
    return showsUse(one, await core.get({ key: itemKey, consistent: true }));
  };
  const others = (Object.keys(kinds) as KeyKind[]).filter((one) => one !== kind);
  const found = await Promise.all(others.map(isUsed));
  const other = others[found.indexOf(true)];
  if (other === undefined || (await isUsed(kind))) return;
  const message =
    `${shown(key)} is used as a ${other} (${kinds[other].flags}), and a ${kind} of the same key would not exclude its ` +
    "holders. Give the same flags as they do, or another key; --mixed-ok allows it. Nothing done";
  throw new CommandError(message, exitCodes.usage);
}

/** Whether an item shows use by callers, and not only an operator's pause. */
function showsUse(kind: KeyKind, item: Item | undefined): boolean {
  if (item === undefined) return false;
  if (kind !== "lock") return !isPauseAlone(item);
  const { token, pauseToken, doneSlot } = attributeNames;
  const isHeld = item[token] !== undefined && item[token] !== item[pauseToken];
  const last = lastHolderIn(item);
  const wasHeld = last !== undefined && !last.owner.startsWith("paused by ");
  return isHeld || wasHeld || item[doneSlot] !== undefined;
}
