// The lease that an operator means, as it is now. So an action cannot hit another holder than the one that was seen.

import type { LeaseRecord } from "@leasehold/client";
import type { DescribedLease, KeyDetails } from "@leasehold/client/admin";
import { CommandError, exitCodes, UsageError } from "../../exit-codes.ts";
import { text } from "../../flags.ts";
import { ageText } from "../../terminal/durations.ts";
import { shown } from "../../terminal/text.ts";
import { shortestPrefix, tokenPrefix } from "../../view/command-lines.ts";
import { rememberedHolder } from "../../view/holders.ts";
import { ownerOf, stateWord } from "../../view/key-rows.ts";

/** The flags that select the lease. */
export const leaseFlags = {
  token: text(
    "TOKEN",
    `the token of the holder that you saw, or its first ${shortestPrefix} characters or more`,
  ),
  place: text("SORTKEY", "which lease, where the key has several; --token says it too"),
} as const;

/** The selection of the lease. */
export interface MeantLease {
  readonly token: string | undefined;
  readonly place: string | undefined;
}

const mostListed = 8;

/**
 * Finds the selected lease. Throws a CommandError: 1 if nobody holds the key, 76 if another holder than the selected
 * one has it; a UsageError if several leases match.
 */
export function seenLease(details: KeyDetails, { token, place }: MeantLease): DescribedLease {
  if (token !== undefined && token.length < shortestPrefix) {
    throw new UsageError(
      `--token is "${shown(token)}"; allowed: a token, or at least ${shortestPrefix} characters of its beginning`,
    );
  }
  const there = details.leases.filter(({ state }) => state !== "free");
  const placed = there.filter(({ sortKey }) => place === undefined || sortKey === place);
  const meant = placed.filter((lease) => token === undefined || lease.token.startsWith(token));
  const [lease, another] = meant;
  if (lease !== undefined && another === undefined) return lease;
  if (lease !== undefined) throw severalOf(details, meant, token);
  const [holder] = placed;
  throw holder === undefined ? freeError(details) : otherHolderError(holder, details.readAt);
}

function severalOf(
  details: KeyDetails,
  leases: readonly DescribedLease[],
  token: string | undefined,
): UsageError {
  const tokens = details.leases.map((one) => one.token);
  const listed = leases.slice(0, mostListed).map((lease) => {
    const prefix = tokenPrefix(lease.token, tokens);
    return `  --token ${shown(prefix)}  ${shown(ownerOf(lease))}, ${stateWord(lease.state)} (${shown(lease.sortKey)})`;
  });
  const more =
    leases.length > mostListed ? [`  and ${leases.length - mostListed} more: leasehold get shows them`] : [];
  const finding =
    token === undefined
      ? `${shown(details.key)} has ${leases.length} leases; say which one`
      : `--token ${shown(token)} is the beginning of ${leases.length} tokens; give more of it`;
  return new UsageError([finding, ...listed, ...more].join("\n"));
}

/** Nobody holds a key. */
export function freeError(details: KeyDetails): CommandError {
  const [last] = rememberedHolder(details);
  const ended =
    last === undefined
      ? ""
      : `: ${last.ended} ${ageText(Math.max(0, details.readAt - last.endedAt))} ago by ${shown(last.owner)}`;
  return new CommandError(`nobody holds ${shown(details.key)}${ended}. Nothing done`, exitCodes.nothing);
}

/** Another holder than the selected one has the key. */
export function otherHolderError(holder: LeaseRecord, nowMs: number): CommandError {
  const since = ageText(Math.max(0, nowMs - holder.acquiredAt));
  const message = `held by another since ${since} ago (${shown(holder.owner)}): look again. Nothing done`;
  return new CommandError(message, exitCodes.lost);
}
