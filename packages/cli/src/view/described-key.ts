// Everything under a key, and what of it cannot be read. A lease in such an item may be held: it is not known to be free.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { UnreadableEvent } from "@leasehold/client";
import type { KeyDetails, LeaseOperator } from "@leasehold/client/admin";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";
import { lockLike, primitiveOf } from "./key-rows.ts";

export interface DescribedKey {
  readonly details: KeyDetails;
  /** What is said of each item of a lock, semaphore or read-write lock that cannot be read. */
  readonly unreadable: readonly string[];
}

export async function describedKey(operator: LeaseOperator, key: string): Promise<DescribedKey> {
  const unreadable: string[] = [];
  const onMessage = (event: unknown): void => {
    const one = event as UnreadableEvent;
    const isLock = lockLike.includes(primitiveOf(one.sortKey));
    if (one.key === key && isLock) unreadable.push(shown(one.message));
  };
  subscribe("leasehold:unreadable", onMessage);
  try {
    return { details: await operator.describe(key), unreadable };
  } finally {
    unsubscribe("leasehold:unreadable", onMessage);
  }
}

/** Throws a CommandError (78) if something under a key cannot be read: then nobody can say that it is free. */
export function refuseUnreadable({ unreadable }: DescribedKey): void {
  if (unreadable.length > 0) throw new CommandError(unreadable.join("\n"), exitCodes.configuration);
}
