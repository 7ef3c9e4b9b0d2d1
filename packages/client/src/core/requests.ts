/**
 * Requests that end in time: each has a time limit, a request that has become too old is not sent, and the service's clock
 * learns the time from each answer. A request without an answer in time rejects with LeaseServiceError; its write may have
 * landed.
 */

import type { ServiceClock } from "../base/service-clock.ts";
import type {
  CallOptions,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionResult,
} from "../base/store.ts";
import { type CallBudget, TimedCall } from "../base/timed-call.ts";
import type { Write } from "../statements/statement.ts";

/** The table, and the clock that learns from its answers. */
export interface Table {
  readonly store: LeaseStore;
  readonly clock: ServiceClock;
}

/** Makes one call to the store in its time. */
export async function request<T>(
  { store, clock }: Table,
  budget: CallBudget,
  send: (store: LeaseStore, call: CallOptions) => Promise<T>,
): Promise<T> {
  const call = new TimedCall(clock, budget);
  try {
    return await send(store, call);
  } finally {
    call.end();
  }
}

/** Several conditional writes of different items: all of them or none. At most 100. */
export function transact(
  table: Table,
  writes: readonly Write[],
  budget: CallBudget = {},
): Promise<TransactionResult> {
  const entries = writes.map((write) => write.entry());
  return request(table, budget, (store, call) => store.transact(entries, call));
}

/** One page of the items under a key. */
export function query(table: Table, asked: QueryRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.query(asked, call));
}

/** One page of all items that pass a filter. */
export function scan(table: Table, asked: ScanRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.scan(asked, call));
}
