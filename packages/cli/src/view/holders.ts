// Who had a lock before: as its item remembers the last one, and as the key's history shows more.

import type { KeyDetails } from "@leasehold/client/operator";
import { endText } from "./key-rows.ts";

/** A holder whose time is over. */
export interface PastHolder {
  readonly owner: string;
  /** Milliseconds; undefined where the beginning is not known. */
  readonly heldForMs: number | undefined;
  /** How it ended, in words. */
  readonly ended: string;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

/** The holders that a key's items remember: the last one. */
export function pastHolders({ lastHolder }: KeyDetails): readonly PastHolder[] {
  if (lastHolder === undefined) return [];
  const { owner, acquiredAt, endedAt, end } = lastHolder;
  return [{ owner, heldForMs: endedAt - acquiredAt, ended: endText(end), endedAt }];
}
