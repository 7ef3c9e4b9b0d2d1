/** What a workflow does while another holder has the lock. */
import { observedShare } from "@leasehold/client/internal";
import { call, callOnce, catching, choice, type Json, jsonata, refused, rule, type State } from "./asl.ts";
import { ofRecord, parkArguments, revokeArguments } from "./lease-requests.ts";
import { failure, refusingRedrive } from "./redrive-refusal.ts";
import { assigning, own } from "./reserved-names.ts";
import { leaseOf, type WorkflowTerms } from "./workflow-terms.ts";

/** A wake-up that is lost is made good after the holder's lease, and then after longer and longer times up to this. */
const longestParkMs = 300_000;

/** Decides by the variable `record`, which has just refused the grant. */
export function judgeHolder(terms: WorkflowTerms): State {
  const { whenHeld, clockSkewMs, once } = terms;
  const isAlive = `${ofRecord("expiresAt", "N", terms)} > $millis()`;
  const isExpired = `$not(${isOwnClock(terms)}) and ${ofRecord("expiresAt", "N", terms)} + ${clockSkewMs} < $millis()`;
  const done = ofRecord("doneSlot", "S", terms);
  const hasTime = `$millis() < ${own("waitUntil")}`;
  // Of a lease whose expiry says nothing, a workflow that waits takes note since when it has not changed.
  const watched = assigning({
    watched: {
      token: jsonata(ofRecord("token", "S", terms)),
      version: jsonata(ofRecord("version", "N", terms)),
      since: jsonata(`${isUnchanged(terms)} ? ${own("watched")}.since : $millis()`),
    },
  });
  const held: Json[] = {
    fail: [],
    skip: [rule("true", "Skipped", assigning({ reason: "held" }))],
    wait: [rule(hasTime, "Park", watched)],
    replace: [
      rule(`${hasTime} and $not($exists(${ofRecord("revocation", "S", terms)}))`, "Revoke", watched),
      rule(hasTime, "Park", watched),
    ],
  }[whenHeld];
  return choice(
    [
      // One's own write, whose answer was lost.
      rule(
        `${ofRecord("token", "S", terms)} = ${own("token")} and ${isAlive}`,
        "StartKeeper",
        leaseOf(own("record"), terms),
      ),
      ...(once
        ? [rule(`$exists(${done}) and ${done} >= ${own("slot")}`, "Skipped", assigning({ reason: "done" }))]
        : []),
      rule(`$not($exists(${ofRecord("token", "S", terms)}))`, "Acquire"),
      rule(isExpired, "TakeOver"),
      ...(canWait(terms)
        ? [rule(`${isUnchanged(terms)} and ${observedAt(terms)} < $millis()`, "TakeOver")]
        : []),
      ...held,
    ],
    "Unavailable",
  );
}

export const canWait = ({ whenHeld }: Pick<WorkflowTerms, "whenHeld">): boolean =>
  whenHeld === "wait" || whenHeld === "replace";

/** Whether the expiry in the variable `record` is of its holder's own clock, and tells nobody else anything. */
function isOwnClock(terms: WorkflowTerms): string {
  return `${ofRecord("ownClock", "N", terms)} = ${ofRecord("version", "N", terms)}`;
}

/** Whether the lease in the variable `record` is as it was when this workflow looked before. */
function isUnchanged(terms: WorkflowTerms): string {
  const watched = own("watched");
  return (
    `${watched}.token = ${ofRecord("token", "S", terms)} and ` +
    `${watched}.version = ${ofRecord("version", "N", terms)}`
  );
}

/** From when on a lease that has not changed since is over by observation. */
function observedAt(terms: WorkflowTerms): string {
  return `${own("watched")}.since + ${observedShare} * ${ofRecord("leaseDurationMs", "N", terms)}`;
}

/** The states of a workflow that waits; none where it does not. */
export function waiting(terms: WorkflowTerms): Record<string, State> {
  const { whenHeld, clockSkewMs } = terms;
  if (!canWait(terms)) return {};
  const expiry = `(${isOwnClock(terms)} ? ${observedAt(terms)} : ${ofRecord("expiresAt", "N", terms)} + ${clockSkewMs})`;
  const untilExpiry = `$max([1000, ${expiry} - $millis()])`;
  const patience = `$min([$max([${untilExpiry}, $min([1000 * $power(2, $min([${own("parks")}, 9])), ${longestParkMs}])]), $max([1000, ${own("waitUntil")} - $millis()])])`;
  const again = assigning({ parks: jsonata(`${own("parks")} + 1`) });
  return {
    Park: refusingRedrive(
      callOnce("dynamodb:transactWriteItems.waitForTaskToken", {
        Arguments: parkArguments(terms),
        TimeoutSeconds: jsonata(`$ceil(${patience} / 1000)`),
        Assign: again,
        Next: "Acquire",
        Catch: [
          catching("States.Timeout", "Acquire", { Assign: again }),
          // The lock was let go, or written, in the same moment.
          catching("DynamoDb.TransactionCanceledException", "Acquire", { Assign: again }),
          catching("States.ALL", "Failed", { Assign: failure }),
        ],
      }),
    ),
    ...(whenHeld === "replace"
      ? {
          Revoke: refusingRedrive(
            call("dynamodb:updateItem", {
              Arguments: revokeArguments(terms),
              Next: "Park",
              Catch: [catching(refused, "SeeHolder"), catching("States.ALL", "Failed", { Assign: failure })],
            }),
          ),
        }
      : {}),
  };
}
