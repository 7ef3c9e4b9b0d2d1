import type { LeaseStore, LeaseTransactItem, TransactionEntry } from "@leasehold/client";

/** Entries for a user's own transaction, as a store takes them. */
export function entriesOf(items: readonly LeaseTransactItem[]): TransactionEntry[] {
  return items.map(({ ConditionCheck, Update, Delete }) => {
    const entry = ConditionCheck ?? Update ?? Delete;
    if (entry === undefined) throw new Error("an entry is empty");
    const { pk, sk } = plain(entry.Key);
    return {
      key: { pk: String(pk), sk: String(sk) },
      condition: entry.ConditionExpression,
      names: entry.ExpressionAttributeNames,
      values: plain(entry.ExpressionAttributeValues),
      action: Update ? { update: Update.UpdateExpression } : Delete ? "delete" : "check",
    };
  });
}

/** Writes such a transaction as a user does. Rejects as DynamoDB does where it is refused. */
export async function transactIn(store: LeaseStore, entries: readonly TransactionEntry[]): Promise<void> {
  const { signal } = new AbortController();
  const { applied } = await store.transact(entries, { signal, isCurrent: () => true });
  if (!applied) throw Object.assign(new Error("cancelled"), { name: "TransactionCanceledException" });
}

/** Whether such a transaction was refused. */
export function isCancelled(error: unknown): boolean {
  return error instanceof Error && error.name === "TransactionCanceledException";
}

/** An entry that writes an item of the user's own. */
export function ownWrite(key: TransactionEntry["key"]): TransactionEntry {
  return {
    key,
    condition: "attribute_not_exists(#owner)",
    names: { "#owner": "owner" },
    values: { ":owner": "user" },
    action: { update: "SET #owner = :owner" },
  };
}

function plain(values: Record<string, { S?: string; N?: string }> = {}): Record<string, string | number> {
  return Object.fromEntries(Object.entries(values).map(([name, { S, N }]) => [name, S ?? Number(N)]));
}
