/**
 * When an execution that may hold a lease has ended, this machine releases the lease at once, and the keeper notices
 * that at its next renewal.
 *
 *     Begin ─▶ See ─▶ JudgeHolder ─▶ Ask ─▶ IsOver ─▶ Release ─▶ Pause ─▶ AskAgain ─▶ IsAtWork ─▶ Done
 *                                                                                        │ it was redriven
 *                                                             Done ◀─ Stop ◀─ HasLease ◀─ SeeAgain
 *
 * When a keeper has ended abnormally, this machine starts a new keeper in its place, or stops the work.
 *
 *     Begin ─▶ SeeKept ─▶ JudgeKept ─▶ StartKeeper ─▶ Done        the lease is the work's
 *                 ▲           │             ▼ it fails
 *                 └───────────┼──────── PauseKept
 *                             └─▶ Stop ─▶ Done                    it is another's; or no keeper can be started
 *
 * A lease is a lock's or a permit's: the event says which. Otherwise the machine reads the lock first, and then the
 * permits.
 *
 * It acts only on a lease that names the ended execution as its owner, and proves the lease by token and fencing token.
 * So an event may be late, doubled or lost: a later lease has another owner, and the keeper looks by itself. If an
 * execution is redriven while its lease is being released, it works without a lease, and is stopped.
 */
import {
  call,
  callOnce,
  catching,
  choice,
  chosen,
  type Definition,
  type Json,
  jsonata,
  noSuchExecution,
  refused,
  retry,
  rule,
  type State,
  startedBefore,
  startedBy,
  succeed,
  wait,
} from "./asl.ts";
import { isExecution, isLeaseOf, isOurs } from "./keeper-start.ts";
import { notPermittedError, notProvenError } from "./keeper-terms.ts";
import { isPermit, keptRecord, keptRequests, sortKeyOf } from "./kept-requests.ts";
import {
  inspectArguments,
  isInCooldown,
  type LeaseTerms,
  ofRecord,
  record,
  wasReleased,
} from "./lease-requests.ts";
import { permitRecordOfOwner, recordedSeat } from "./permit-records.ts";
import { inspectPermitsArguments } from "./permit-requests.ts";
import { permitSortKey } from "./permit-seats.ts";
import { ownerOfExecution } from "./workflow-terms.ts";

/** The terms of the machine besides the table. */
export interface EndedTerms extends LeaseTerms {
  /** The keeper's ARN; may be a token. */
  readonly keeperArn: string;
}

/** A keeper that ends with one of these has stopped its work, or has never kept its lease. */
const ownEnds: readonly string[] = [
  "LeaseLostError",
  "InvalidOptionsError",
  notPermittedError,
  notProvenError,
];
/**
 * The most keepers in a row that replace one another, or fail to; then the work is stopped. A hand-over ends the row,
 * so that the row does not grow while the work goes on.
 */
const mostKeepers = 20;
/**
 * A new keeper is ready in less than a second, unless Step Functions is slow. A request that hangs leaves time for another
 * one, because the lease is not renewed meanwhile; two keepers of one lease do no harm.
 */
const keeperStartSeconds = jsonata("$max([3, $min([40, $floor($lease.leaseDurationMs / 3000)])])");

/** No caller waits for it, so it may go on until the service answers again. */
const patiently = retry([refused, noSuchExecution], {
  IntervalSeconds: 2,
  MaxAttempts: 10,
  MaxDelaySeconds: 120,
});

/** Whether the execution holds the lock. A lock in its cooldown still names its last owner. */
const isHolder = `${ofRecord("owner", "S")} = ${ownerOfExecution("$execution")} and $not(${isInCooldown()})`;

/** Whether the execution works after all: it may have been redriven since. */
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
 * Returns the definition. Its input is EventBridge's "Step Functions Execution Status Change" event, of which it reads
 * `detail.executionArn` and `detail.input`, and perhaps `key`: the lock's key, and `sortKey` where it is a semaphore's.
 * Without `key`, the key is the field `key` of the execution's own input. If an event omits that input, or names no
 * execution, the machine does nothing. The event of a keeper is passed on whole: its input has the lease that it kept.
 */
export function endedDefinition(terms: EndedTerms): Definition {
  const { key, detail } = { key: "$states.input.key", detail: "$states.input.detail" };
  const look = (next: string, request: Json, found: Json): State =>
    call("dynamodb:getItem", { Arguments: request, Assign: { record: found }, Next: next, Retry: patiently });
  const ofOwner = permitRecordOfOwner(ownerOfExecution("$execution"));
  const see = (next: string): State =>
    look(
      next,
      chosen(isPermit, inspectPermitsArguments(terms), inspectArguments(terms)),
      chosen(isPermit, ofOwner, record),
    );
  const seeKept = (next: string): State => ({
    ...look(next, keptRequests(terms).inspect, keptRecord),
    TimeoutSeconds: keeperStartSeconds,
  });
  const named = `($exists(${key}) ? ${key} : $type(${detail}.input) = 'string' ? $parse(${detail}.input).key : 0)`;
  return {
    Comment: "Lets go of the lease of an execution that has ended, and replaces a keeper that has.",
    StartAt: "Begin",
    States: {
      Begin: choice(
        [
          ...ofKeeper(terms, detail),
          rule(
            `$type(${detail}.executionArn) = 'string' and ($type(${named}) = 'string' ? $length(${named}) > 0 : false)`,
            "See",
            {
              key: jsonata(named),
              execution: jsonata(`${detail}.executionArn`),
              sortKey: jsonata(sortKeyOf("$states.input")),
              // The execution's own input does not say which of the two it is.
              mayBePermit: jsonata(`$not($exists(${key}))`),
            },
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
            seat: jsonata(recordedSeat),
          }),
          rule("$mayBePermit", "See", { sortKey: permitSortKey, mayBePermit: false }),
        ],
        "Done",
      ),
      Ask: ask("IsOver"),
      IsOver: choice([rule(isAtWork, "Done")], "Release"),
      Release: call("dynamodb:updateItem", {
        Arguments: keptRequests(terms).release,
        Next: "Pause",
        Retry: patiently,
        // The execution itself or its keeper has released the lease: the record of the look is gone.
        Catch: [catching(refused, "Done")],
      }),
      // A description may be this old.
      Pause: wait("5", "AskAgain"),
      AskAgain: ask("IsAtWork"),
      IsAtWork: choice([rule(isAtWork, "SeeAgain")], "Done"),
      SeeAgain: see("HasLease"),
      HasLease: {
        ...choice([rule(isHolder, "Done")], "Stop"),
        Assign: { loss: "it was redriven, and its lease had been let go" },
      },
      ...replacingKeeper(terms, seeKept),
      Stop: call("sfn:stopExecution", {
        Arguments: {
          ExecutionArn: jsonata("$execution"),
          Error: "LeaseLostError",
          Cause: jsonata("$loss"),
        },
        Next: "Done",
        Retry: patiently,
        Catch: [catching(noSuchExecution, "Done")],
      }),
      Done: succeed({}),
    },
  };
}

/** The rules for a keeper's event. After a normal end, nothing is left to do. */
function ofKeeper({ tableName, keeperArn }: EndedTerms, detail: string): Json[] {
  const isKeeper = `($type(${detail}.stateMachineArn) = 'string' ? ${detail}.stateMachineArn = '${keeperArn}' : false)`;
  const kept = `$parse(${detail}.input)`;
  const isOwnEnd = `${detail}.error in [${ownEnds.map((error) => `'${error}'`).join(", ")}]`;
  const hasWork = `($kept := ${kept}; ${isLeaseOf("$kept.lease", tableName)} and ${isExecution("$kept.guarded")})`;
  const guardsWork = `($type(${detail}.input) = 'string' ? ${hasWork} : false)`;
  const number = (field: string): string =>
    jsonata(`($kept := ${kept}; $type($kept.${field}) = 'number' ? $kept.${field} : 0)`);
  const variables = {
    lease: jsonata(`${kept}.lease`),
    key: jsonata(`${kept}.lease.key`),
    sortKey: jsonata(`($kept := ${kept}; ${sortKeyOf("$kept.lease")})`),
    token: jsonata(`${kept}.lease.token`),
    fence: jsonata(`${kept}.lease.fencingToken`),
    execution: jsonata(`${kept}.guarded`),
    generation: number("generation"),
    replaced: number("replaced"),
    ended: jsonata(`${detail}.executionArn`),
    // A failed keeper may have had an input that proves nothing. Only a keeper that was stopped from outside may have
    // kept the lease.
    hasKept: jsonata(`${detail}.status in ['ABORTED', 'TIMED_OUT']`),
  };
  return [
    rule(`${isKeeper} ? ($not(${isOwnEnd}) and ${guardsWork}) : false`, "SeeKept", variables, {}),
    rule(isKeeper, "Done", {}, {}),
  ];
}

/**
 * Starts a new keeper at once, because the lease's time is running. The keeper proves the lease, looks at the work and
 * renews before it answers. Its name follows from the ended keeper, so a second event of the same end starts none.
 */
function replacingKeeper(
  { keeperArn }: EndedTerms,
  see: (next: string) => State,
): Readonly<Record<string, State>> {
  const isKept = `${isOurs} and ${ofRecord("owner", "S")} = ${ownerOfExecution("$execution")}`;
  const input =
    "{'lease': $lease, 'guarded': $execution, 'generation': $generation, 'replaced': $replaced + 1, " +
    `'taskToken': $states.context.Task.Token, ${startedBy}}`;
  return {
    SeeKept: see("JudgeKept"),
    JudgeKept: choice(
      [
        rule(`${isKept} and $replaced < ${mostKeepers}`, "StartKeeper", { hasKept: true }),
        rule(isKept, "Stop", { loss: "no keeper of its lease goes on" }),
        rule(wasReleased(), "Done"),
        rule("$hasKept", "Stop", {
          loss: "the lease is lost: its keeper ended before its work did, and no other kept it in time",
        }),
      ],
      "Done",
    ),
    StartKeeper: callOnce("sfn:startExecution.waitForTaskToken", {
      Arguments: {
        StateMachineArn: keeperArn,
        Name: jsonata("$hash($ended & ' ' & $string($replaced), 'SHA-256')"),
        Input: jsonata(`$string(${input})`),
      },
      TimeoutSeconds: keeperStartSeconds,
      Next: "Done",
      Catch: [
        catching(startedBefore, "Done"),
        catching("States.ALL", "PauseKept", { Assign: { replaced: jsonata("$replaced + 1") } }),
      ],
    }),
    PauseKept: wait("$min([$replaced, 15])", "SeeKept"),
  };
}
