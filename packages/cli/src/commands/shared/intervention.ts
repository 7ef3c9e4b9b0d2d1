// The common parts of all interventions: they show the lease, ask, act on exactly that lease, and report the result.

import type { LeaseClient } from "@leasehold/client";
import { LeaseOperator, type OperatorResult } from "@leasehold/client/admin";
import type { Call } from "../../command.ts";
import type { Connection } from "../../connection.ts";
import { CommandError, exitCodes, UsageError } from "../../exit-codes.ts";
import { text } from "../../flags.ts";
import { confirm } from "../../terminal/terminal.ts";
import { shown } from "../../terminal/text.ts";
import { serviceNow } from "../../view/service-time.ts";
import { otherHolderError } from "./seen-lease.ts";

/** Why it is done: shown to others, and kept in the audit trail. */
export const reasonFlag = text("TEXT", "why: shown to others, and kept for 30 days (leasehold audit)");

/** A call of a command that intervenes. */
type Calling = Pick<Call, "global" | "terminal" | "signal" | "by" | "printer">;

/** An operator on a table. */
export function operatorOn({ client }: Pick<Connection, "client">, { by }: Pick<Call, "by">): LeaseOperator {
  return new LeaseOperator(client, { by });
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
