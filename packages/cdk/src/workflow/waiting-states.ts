/** The states of a workflow while another holder has the lock. */
import { observedShare } from "@leasehold/client/internal";
import { call, catching, choice, type Json, jsonata, refused, retryUnless, rule, type State } from "./asl.ts";
import { ofRecord, parkArguments, revokeArguments } from "./lease-requests.ts";
import { failure, refusingRedrive } from "./redrive-refusal.ts";
import { assigning, own } from "./reserved-names.ts";
import { endedTooSoon, leaseOf, type WorkflowTerms } from "./workflow-terms.ts";

/**
 * If a wake-up is lost, the execution tries again after the holder's lease, then after longer and longer times up to
 * this.
 */
const longestParkMs = 300_000;
/** DynamoDB's error when an entry of a transaction is refused. */
const cancelled = "DynamoDb.TransactionCanceledException";

/** Decides by the variable `record`, which shows the holder that has refused the grant. */
export function judgeHolder(terms: WorkflowTerms): State {
  const { whenHeld, clockSkewMs, once } = terms;
  const isAlive = `${ofRecord("expiresAt", "N", terms)} > $millis()`;
  const isExpired = `$not(${isOwnClock(terms)}) and ${ofRecord("expiresAt", "N", terms)} + ${clockSkewMs} < $millis()`;
  const isFree = `$not($exists(${ofRecord("token", "S", terms)}))`;
  const done = ofRecord("doneSlot", "S", terms);
  const hasTime = `$millis() < ${own("waitUntil")}`;
  // If a lease's expiry means nothing here, a waiting workflow notes since when the lease has stayed unchanged.
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
      // Its own write, whose answer was lost.
      rule(
        `${ofRecord("token", "S", terms)} = ${own("token")} and ${isAlive}`,
        "StartKeeper",
        leaseOf(own("record"), terms),
      ),
      ...(once
        ? [rule(`$exists(${done}) and ${done} >= ${own("slot")}`, "Skipped", assigning({ reason: "done" }))]
        : []),
      // The item refuses this token for as long as it names it as the last one that was released.
      rule(
        `${isFree} and ${ofRecord("releasedToken", "S", terms)} = ${own("token")}`,
        "Failed",
        assigning({ failure: endedTooSoon }),
      ),
      rule(isFree, "Acquire"),
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

/** Whether the expiry in the variable `record` comes from its holder's own clock, and means nothing to others. */
function isOwnClock(terms: WorkflowTerms): string {
  return `${ofRecord("ownClock", "N", terms)} = ${ofRecord("version", "N", terms)}`;
}

/** Whether the lease in the variable `record` is unchanged since this workflow's last look. */
function isUnchanged(terms: WorkflowTerms): string {
  const watched = own("watched");
  return (
    `${watched}.token = ${ofRecord("token", "S", terms)} and ` +
    `${watched}.version = ${ofRecord("version", "N", terms)}`
  );
}

/** The time when an unchanged lease has expired by observation. */
function observedAt(terms: WorkflowTerms): string {
  return `${own("watched")}.since + ${observedShare} * ${ofRecord("leaseDurationMs", "N", terms)}`;
}

/** The states of a workflow that waits; none without a wait. */
export function waiting(terms: WorkflowTerms): Record<string, State> {
  const { whenHeld, clockSkewMs } = terms;
  if (!canWait(terms)) return {};
  const expiry = `(${isOwnClock(terms)} ? ${observedAt(terms)} : ${ofRecord("expiresAt", "N", terms)} + ${clockSkewMs})`;
  const untilExpiry = `$max([1000, ${expiry} - $millis()])`;
  const patience = `$min([$max([${untilExpiry}, $min([1000 * $power(2, $min([${own("parks")}, 9])), ${longestParkMs}])]), $max([1000, ${own("waitUntil")} - $millis()])])`;
  const again = assigning({ parks: jsonata(`${own("parks")} + 1`) });
  return {
    Park: refusingRedrive(
      call("dynamodb:transactWriteItems.waitForTaskToken", {
        Arguments: parkArguments(terms, patience),
        TimeoutSeconds: jsonata(`$ceil(${patience} / 1000)`),
        Retry: retryUnless(cancelled),
        Assign: again,
        Next: "Acquire",
        Catch: [
          catching("States.Timeout", "Acquire", { Assign: again }),
          // The lock was released, or written, at the same moment.
          catching(cancelled, "Acquire", { Assign: again }),
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
