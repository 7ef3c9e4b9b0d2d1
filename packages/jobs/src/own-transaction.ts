/** Writes on the lease table that the user sends, in a transaction of their own. */
import type { ConditionCheckOptions, Item, LeaseTransactItem, ValueFormat } from "@leasehold/client";
import {
  type Core,
  checkOptions,
  conditionCheckRules,
  type ItemKey,
  transactItem,
  type Write,
} from "@leasehold/client/internal";

/** Sends a transaction with these entries. */
export type SendEntries = (entries: LeaseTransactItem[]) => Promise<unknown>;

/** The form of the entries' values: by the options, else that of the client. Throws InvalidOptionsError. */
export function formatOf(core: Core, options: ConditionCheckOptions): ValueFormat {
  const { format = core.format } = checkOptions(options, conditionCheckRules);
  return format;
}

/** Gives writes as entries of the user's transaction. */
export function entriesOf(core: Core, writes: readonly Write[], format: ValueFormat): LeaseTransactItem[] {
  return writes.map((write) => transactItem(core.tableName, write, format));
}

/**
 * Has the user send entries. If that rejects, reads an item that shows whether they were written all the same, because
 * an answer may be lost. Rejects with the user's error if they were not, or if that cannot be known.
 */
export async function sendByUser(
  core: Core,
  send: SendEntries,
  entries: LeaseTransactItem[],
  shown: { readonly key: ItemKey; isWritten(item: Item | undefined): boolean },
): Promise<void> {
  try {
    await send(entries);
  } catch (error) {
    // Ignored: the user's own error comes first.
    const item = await core.get({ key: shown.key, consistent: true }).catch(() => undefined);
    if (!shown.isWritten(item)) throw error;
  }
}
