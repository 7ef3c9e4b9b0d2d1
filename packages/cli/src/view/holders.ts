// The past holders of a lock: from the key's history, or the last one that its item remembers.

import type { KeyDetails, LeaseChange, LeaseOperator } from "@leasehold/client/admin";
import { endText } from "./key-rows.ts";

/** A holder whose hold has ended. */
export interface PastHolder {
  readonly owner: string;
  readonly heldForMs: number;
  /** How it ended, in words. */
  readonly ended: string;
  /** Epoch milliseconds. */
  readonly endedAt: number;
}

const wordsOfEnds: Readonly<Partial<Record<LeaseChange["what"], string>>> = {
  released: endText("released"),
  completed: endText("completed"),
  broken: endText("broken"),
  takenOver: endText("takenOver"),
  expired: "EXPIRED",
  resumed: "resumed",
  gone: "gone",
};

/** Changes that show one holder; more holders if few of them were asked to stop. */
const changesPerHolder = 3;

/**
 * The last holders, the latest first: from the key's history if it is kept (1 request), otherwise the remembered one.
 */
export async function pastHolders(
  operator: LeaseOperator,
  details: KeyDetails,
  most: number,
): Promise<readonly PastHolder[]> {
  const found: PastHolder[] = [];
  const options = { newestFirst: true, limit: most * changesPerHolder };
  for await (const { what, owner, at, acquiredAt } of operator.history(details.key, options)) {
    const ended = wordsOfEnds[what];
    if (ended === undefined || found.length >= most) continue;
    found.push({ owner, heldForMs: Math.max(0, at - acquiredAt), ended, endedAt: at });
  }
  return found.length > 0 ? found : rememberedHolder(details);
}

/** The holder that a lock's item remembers. */
export function rememberedHolder({ lastHolder }: KeyDetails): readonly PastHolder[] {
  if (lastHolder === undefined) return [];
  const { owner, acquiredAt, endedAt, end } = lastHolder;
  return [{ owner, heldForMs: endedAt - acquiredAt, ended: endText(end), endedAt }];
}
