// The common parts of all interventions: they show the lease, ask, act on exactly that lease, and report the result. So
// an action cannot hit another holder than the one that was seen.

import type { LeaseClient, LeaseRecord } from "@leasehold/client";
import {
  type DescribedLease,
  type KeyDetails,
  LeaseOperator,
  type OperatorResult,
} from "@leasehold/client/admin";
import type { Call } from "../../command.ts";
import type { Connection } from "../../connection.ts";
import { CommandError, exitCodes, UsageError } from "../../exit-codes.ts";
import { text } from "../../flags.ts";
import { confirm } from "../../terminal/terminal.ts";
import { ageText, shown } from "../../terminal/text.ts";
import { rememberedHolder } from "../../view/history.ts";
import { ownerOf, stateWord } from "../../view/key-rows.ts";
import { shortestPrefix, tokenPrefix } from "../../view/next-steps.ts";
import { serviceNow } from "../../view/table-snapshot.ts";

/** Why it is done: shown to others, and kept in the audit trail. */
export const reasonFlag = text("TEXT", "why: shown to others, and kept for 30 days (leasehold audit)");

/** A call of a command that intervenes. */
type Calling = Pick<Call, "global" | "terminal" | "signal" | "by" | "printer">;

/** Everything under a key, and the operator that may act on it. */
export async function describedKey(
  { connect, by }: Pick<Call, "connect" | "by">,
  key: string,
): Promise<{
  readonly connection: Connection;
  readonly operator: LeaseOperator;
  readonly details: KeyDetails;
}> {
  const connection = await connect();
  const operator = new LeaseOperator(connection.client, { by });
  return { connection, operator, details: await operator.describe(key) };
}

/** Asks unless the user has agreed already, or nothing is sent. Throws a CommandError (1) for a no. */
export async function agreed(
  { global, terminal, signal }: Calling,
  question: { readonly question: string; readonly word?: string },
): Promise<void> {
  if (global.yes || global["dry-run"]) return;
  if (await confirm(terminal, { ...question, signal })) return;
  throw new CommandError("nothing done", exitCodes.nothing);
}

/** The given reason, or the answer to a question. Throws a UsageError without a reason. */
export async function reasonOf(
  { global, terminal, signal }: Calling,
  given: string | undefined,
): Promise<string> {
  if (given !== undefined) return given;
  const isAnswered = !global.yes && terminal.canAsk;
  const answer = isAnswered ? await terminal.ask("Reason (kept for 30 days): ", signal) : "";
  if (answer !== "") return answer;
  throw new UsageError("--reason is missing: it is kept in the audit trail, for those who look later");
}

/** The lease of the action. Throws a CommandError: 1 if nobody holds it, 76 if another holder does. */
export function doneTo(
  result: OperatorResult,
  key: string,
  client: LeaseClient,
): Extract<OperatorResult, { readonly outcome: "done" }> {
  if (result.outcome === "done") return result;
  if (result.outcome === "heldByAnother") throw otherHolderError(result.holder, serviceNow(client));
  throw new CommandError(`${shown(key)} was released in the meantime. Nothing done`, exitCodes.nothing);
}

/** Reports the action: to people in words, to other programs in the form of the audit trail. */
export function sayDone(
  { terminal, printer }: Calling,
  { entry }: Extract<OperatorResult, { readonly outcome: "done" }>,
  words: string,
): void {
  if (printer.isForPeople) terminal.say(words);
  else printer.document("action", entry, () => []);
}

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
function otherHolderError(holder: LeaseRecord, nowMs: number): CommandError {
  const since = ageText(Math.max(0, nowMs - holder.acquiredAt));
  const message = `held by another since ${since} ago (${shown(holder.owner)}): look again. Nothing done`;
  return new CommandError(message, exitCodes.lost);
}
