import { callBudgetMs, type ProtocolContext } from "./protocol/context.ts";
import { type LeaseRecord, readRecord } from "./record.ts";
import type { ItemKey } from "./schema.ts";
import type { QueryRequest } from "./store.ts";
import { withBudget } from "./time/budget.ts";
import type { ClockOffset } from "./time/skew.ts";

/** How one look at others' leases is made. */
export interface LookOptions {
  /** A consistent look sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
  /** @default 10000 */
  readonly budgetMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What is presumed where a read's answer does not vouch for a clock: agreement. It only says what is worth an attempt,
 * whose own answer vouches for the clock or does not.
 */
export const presumedOffset: ClockOffset = { minMs: 0, maxMs: 0 };

/** Reads all leases that a query finds and that have not been released: 1 request for each megabyte of items. */
export async function lookAtAll(
  { clock, store }: ProtocolContext,
  query: Pick<QueryRequest, "keyCondition" | "names" | "values">,
  { consistent, budgetMs = callBudgetMs, signal }: LookOptions,
): Promise<LeaseRecord[]> {
  const records: LeaseRecord[] = [];
  let after: ItemKey | undefined;
  do {
    const request = { ...query, consistent, ...(after === undefined ? {} : { after }) };
    const page = await withBudget(clock, budgetMs, signal, (call) => store.query(request, call));
    for (const item of page.items) {
      const record = readRecord(item);
      if (record !== undefined) records.push(record);
    }
    after = page.next;
  } while (after !== undefined);
  return records;
}
