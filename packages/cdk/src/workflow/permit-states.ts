/**
 * The states of a workflow whose permit was refused; for a lock they are in waiting-states.ts. The semaphore's item
 * shows every lease, so all are judged at once.
 *
 *     SeeHolder ─▶ JudgeHolder ─▶ TakeOver                    an expired lease makes room
 *         ▲             ├─▶ ClearPermit ─▶ SeeHolder          more of them have to go, one after the other
 *         │             ├─▶ Skipped, Unavailable              the permits are taken
 *         │             └─▶ Cancel                            its own lease has ended before its keeper was started
 *
 *     Cancel ─▶ Failed
 *        └─ no lease is there ─▶ RevokeToken ─▶ Failed
 *                                     └─ it has landed just now ─▶ CancelLanded ─▶ Failed
 */
import { call, catching, choice, fail, jsonata, refused, rule, type State } from "./asl.ts";
import { judgedPermits } from "./permit-records.ts";
import {
  cancelPermitArguments,
  clearPermitArguments,
  inspectPermitsArguments,
  type PermitTerms,
  revokePermitArguments,
} from "./permit-requests.ts";
import { failure } from "./redrive-refusal.ts";
import { assigning, own } from "./reserved-names.ts";
import { endedTooSoon, leaseOf, letGo, type WorkflowTerms } from "./workflow-terms.ts";

/** The terms of a workflow that takes permits. */
export type PermitWorkflowTerms = WorkflowTerms & PermitTerms;

const judged = own("judged");

/** The states of a workflow with permits that differ from a lock's. */
export function permitStates(terms: PermitWorkflowTerms): Record<string, State> {
  return {
    SeeHolder: call("dynamodb:getItem", {
      Arguments: inspectPermitsArguments(terms),
      Assign: assigning({ judged: judgedPermits(terms) }),
      Next: "JudgeHolder",
      Catch: [
        // States.ALL does not include it.
        catching("States.DataLimitExceeded", "Cancel", { Assign: assigning({ failure: semaphoreTooLarge }) }),
        catching("States.ALL", "Cancel", { Assign: failure }),
      ],
    }),
    JudgeHolder: judgeHolders(terms),
    ClearPermit: call("dynamodb:updateItem", {
      Arguments: clearPermitArguments(terms),
      Next: "SeeHolder",
      Catch: [
        // The lease was renewed, or another caller was faster.
        catching(refused, "SeeHolder"),
        catching("States.ALL", "Cancel", { Assign: failure }),
      ],
    }),
    Cancel: letGo(cancelPermitArguments(terms), catching(refused, "RevokeToken")),
    RevokeToken: letGo(revokePermitArguments(terms), catching(refused, "CancelLanded")),
    CancelLanded: letGo(cancelPermitArguments(terms)),
    Unreadable: fail(
      "LeaseItemError",
      jsonata(
        `'the permits of the semaphore ' & ${own("key")} & ' are not what its leases take: another program has written its item'`,
      ),
    ),
    Unavailable: fail(
      "LeaseUnavailableError",
      jsonata(
        `'too few of the ${terms.permits} permits of the semaphore ' & ${own("key")} & ' are free, and the next to end is held by ' & ${judged}.next`,
      ),
    ),
  };
}

const semaphoreTooLarge = {
  Error: "SemaphoreTooLargeError",
  Cause:
    "the leases of the semaphore are more than the 256 KiB that Step Functions reads: " +
    "let its other callers store less data with their leases, or have fewer permits",
};

/** Decides by the variable `judged`, which shows the leases that have refused the permit. */
function judgeHolders(terms: PermitWorkflowTerms): State {
  const canPass = `${judged}.expired >= ${judged}.lacking`;
  const passed = assigning({ passed: jsonata(`${judged}.passed`) });
  return choice(
    [
      // Its own write, whose answer was lost.
      rule(`$exists(${judged}.own)`, "StartKeeper", leaseOf(`${judged}.own`, terms)),
      rule(`${judged}.isOver`, "Cancel", assigning({ failure: endedTooSoon })),
      rule(`$not(${judged}.isReadable)`, "Unreadable"),
      rule(`${judged}.lacking <= 0`, "Acquire"),
      rule(`${canPass} and ${judged}.passed.permits >= ${judged}.lacking`, "TakeOver", passed),
      rule(canPass, "ClearPermit", passed),
      ...(terms.whenHeld === "skip" ? [rule("true", "Skipped", assigning({ reason: "held" }))] : []),
    ],
    "Unavailable",
  );
}
