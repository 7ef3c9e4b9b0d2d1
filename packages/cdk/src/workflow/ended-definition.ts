/**
 * What is done when an execution has ended that may hold a lease: the lease is let go at once, and its keeper finds that
 * out with its next renewal.
 *
 *     Begin ─▶ See ─▶ JudgeHolder ─▶ Ask ─▶ IsOver ─▶ Release ─▶ Pause ─▶ AskAgain ─▶ IsAtWork ─▶ Done
 *                                                                                        │ it was redriven
 *                                                             Done ◀─ Stop ◀─ HasLease ◀─ SeeAgain
 *
 * It acts on a lease only that names the ended execution as its owner, and proves it by token and fencing token. So an
 * event may be late, doubled or lost: a lease that was acquired since has another owner, and the keeper looks by itself.
 * An execution that was redriven while its lease was let go is at work without one: it is stopped.
 */
import {
  call,
  catching,
  choice,
  type Definition,
  type Json,
  jsonata,
  noSuchExecution,
  refused,
  rule,
  type State,
  succeed,
  wait,
} from "./asl.ts";
import {
  inspectArguments,
  isInCooldown,
  type LeaseTerms,
  ofRecord,
  record,
  releaseArguments,
} from "./lease-requests.ts";
import { ownerOfExecution } from "./workflow-terms.ts";

/** No caller waits for it: it may go on until the service answers again. */
const patiently: Json = [
  { ErrorEquals: [refused, noSuchExecution], MaxAttempts: 0 },
  {
    ErrorEquals: ["States.ALL"],
    IntervalSeconds: 2,
    MaxAttempts: 10,
    BackoffRate: 2,
    MaxDelaySeconds: 120,
    JitterStrategy: "FULL",
  },
];

/** Whether the execution holds the lock. A lock in its cooldown keeps its last owner. */
const isHolder = `${ofRecord("owner", "S")} = ${ownerOfExecution("$execution")} and $not(${isInCooldown})`;

/** Whether it has not ended after all, or no more: it may have been redriven since. */
const isAtWork = "$status in ['RUNNING', 'PENDING_REDRIVE']";

function ask(next: string): State {
  return call("sfn:describeExecution", {
    Arguments: { ExecutionArn: jsonata("$execution"), IncludedData: "METADATA_ONLY" },
    Assign: { status: jsonata("$states.result.Status") },
    Next: next,
    Retry: patiently,
    Catch: [catching(noSuchExecution, next, { Assign: { status: "GONE" } })],
  });
}

/**
 * Gives the definition. Its input is EventBridge's "Step Functions Execution Status Change" event, of which it reads
 * `detail.executionArn` and `detail.input`, and perhaps `key`: the lock's key. Without `key` it is the field `key` of the
 * execution's own input; where an event has no room for that, or names no execution, nothing is done.
 */
export function endedDefinition(terms: LeaseTerms): Definition {
  const { key, detail } = { key: "$states.input.key", detail: "$states.input.detail" };
  const see = (next: string): State =>
    call("dynamodb:getItem", {
      Arguments: inspectArguments(terms),
      Assign: { record },
      Next: next,
      Retry: patiently,
    });
  const named = `($exists(${key}) ? ${key} : $type(${detail}.input) = 'string' ? $parse(${detail}.input).key : 0)`;
  return {
    Comment: "Lets go of the lease of an execution that has ended.",
    StartAt: "Begin",
    States: {
      Begin: choice(
        [
          rule(
            `$type(${detail}.executionArn) = 'string' and ($type(${named}) = 'string' ? $length(${named}) > 0 : false)`,
            "See",
            { key: jsonata(named), execution: jsonata(`${detail}.executionArn`) },
            // The event may be as large as a state's whole data.
            {},
          ),
        ],
        "Done",
      ),
      See: see("JudgeHolder"),
      JudgeHolder: choice(
        [
          rule(isHolder, "Ask", {
            token: jsonata(ofRecord("token", "S")),
            fence: jsonata(ofRecord("fence", "N")),
          }),
        ],
        "Done",
      ),
      Ask: ask("IsOver"),
      IsOver: choice([rule(isAtWork, "Done")], "Release"),
      Release: call("dynamodb:updateItem", {
        Arguments: releaseArguments(terms, false),
        Next: "Pause",
        Retry: patiently,
        // Let go by the execution itself or by its keeper: the record that was seen is gone.
        Catch: [catching(refused, "Done")],
      }),
      // A description may be as old as this.
      Pause: wait("5", "AskAgain"),
      AskAgain: ask("IsAtWork"),
      IsAtWork: choice([rule(isAtWork, "SeeAgain")], "Done"),
      SeeAgain: see("HasLease"),
      HasLease: choice([rule(isHolder, "Done")], "Stop"),
      Stop: call("sfn:stopExecution", {
        Arguments: {
          ExecutionArn: jsonata("$execution"),
          Error: "LeaseLostError",
          Cause: "it was redriven, and its lease had been let go",
        },
        Next: "Done",
        Retry: patiently,
        Catch: [catching(noSuchExecution, "Done")],
      }),
      Done: succeed({}),
    },
  };
}
