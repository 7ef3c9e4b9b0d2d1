/**
 * The start of a keeper. It proves that its lease belongs to the work that it guards before it may stop anything. It
 * renews before the work begins.
 *
 *     Begin ─▶ Prove ─▶ JudgeProof ─▶ MayStop ─▶ AskGuarded ─▶ Decide ─▶ RenewFirst ─▶ IsAwaited ─▶ Answer ─▶ Pause1
 *       │                  ├─▶ Unproven                          └─▶ NotPermitted      │
 *       └─▶ RenewFirst     └─▶ Done                                                     └─▶ Pause1, HoldOn
 *
 *     Unproven, NotPermitted ─▶ TellFailure ─▶ NotBegun
 *
 *     Begin ─▶ Prove ─▶ JudgeProof ─▶ RenewFirst      a permit without an execution: the table alone has its seat's text
 *                          └─▶ Done, Lost
 */
import { seatLimits } from "@leasehold/client/internal";
import { leaseSortKey, limits } from "@leasehold/client/schema";
import {
  call,
  callOnce,
  catching,
  choice,
  type Definition,
  fail,
  type Json,
  jsonata,
  noSuchExecution,
  refused,
  retryAlsoLate,
  rule,
  type State,
  wait,
} from "./asl.ts";
import {
  askGuarded,
  counted,
  errorText,
  eventsOf,
  historyLimits,
  isDenied,
  notPermittedError,
  notProvenError,
  patienceSeconds,
} from "./keeper-terms.ts";
import { keptRecord, keptRequests, recordedState, renewedState, sortKeyOf } from "./kept-requests.ts";
import { type LeaseTerms, ofRecord, wasReleased } from "./lease-requests.ts";
import { permitSortKey } from "./permit-seats.ts";
import { ownerOfExecution } from "./workflow-terms.ts";

/** The most answers to a waiting starter. */
const mostAnswers = 5;

type Assigned = { readonly [variable: string]: Json };

/** The variables that a failed request assigns. */
const trouble: Assigned = { denied: jsonata(isDenied), problem: errorText };

/** A late copy of the acquisition may write the token again, with another fencing token: nobody holds that lease. */
export const isOurs: string = `${ofRecord("token", "S")} = $token and ${ofRecord("fence", "N")} = $fence`;

/** Whether it guards no execution, but keeps the lease until a time. */
export const isAlone = "$guarded = 'nobody'";

/** The states from the start to the first pause. */
export function startingStates(terms: LeaseTerms): Definition["States"] {
  const answered = counted(eventsOf.task);
  const onward = { begun: true, ...counted(2 * eventsOf.choice) };
  return {
    Begin: begin(terms),
    Prove: call("dynamodb:getItem", {
      Arguments: keptRequests(terms).inspect,
      TimeoutSeconds: patienceSeconds,
      Retry: retryAlsoLate(),
      Assign: { record: keptRecord },
      Next: "JudgeProof",
      Catch: [catching("States.ALL", "Unproven", { Assign: trouble })],
    }),
    JudgeProof: choice(
      [
        rule(`${isOurs} and ${isAlone}`, "RenewFirst", recordedState),
        rule(
          `${isOurs} and ${ofRecord("owner", "S")} = ${ownerOfExecution("$guarded")}`,
          "MayStop",
          recordedState,
        ),
        // It starts too late: its starter has given up, or has finished already.
        rule(wasReleased(), "Done"),
        rule(isAlone, "Lost", { loss: "it was broken, or expired and was removed" }),
        rule(isOurs, "Unproven", {
          problem: jsonata(
            `'its owner is ' & ${ofRecord("owner", "S")} & ' and not ' & ${ownerOfExecution("$guarded")}`,
          ),
        }),
      ],
      "Unproven",
    ),
    Unproven: failing(
      notProvenError,
      "'the lease of ' & $key & ' is not the lease of ' & $guarded & ', which is neither kept nor stopped: ' & $problem",
      [rule("$denied", "NotPermitted")],
    ),
    // The error shows whether an execution does not exist or may not be stopped: AWS checks the permission first.
    MayStop: callOnce("sfn:stopExecution", {
      Arguments: { ExecutionArn: jsonata("$join($split($guarded, ':')[[0..6]], ':') & ':' & $uuid()") },
      TimeoutSeconds: patienceSeconds,
      Next: "AskGuarded",
      Catch: [
        catching(noSuchExecution, "AskGuarded"),
        catching("States.ALL", "AskGuarded", { Assign: trouble }),
      ],
    }),
    // A missing execution may have been started a moment ago: descriptions are eventually consistent. So it is gone when
    // two looks in a row do not find it.
    AskGuarded: askGuarded(
      "Decide",
      eventsOf.task + eventsOf.choice,
      jsonata("$begun and $status = 'MISSING' ? 'GONE' : 'MISSING'"),
    ),
    NotPermitted: failing(
      notPermittedError,
      "'the keeper of ' & $key & ' lacks a permission; guard() of its LeaseHeartbeat gives it, or the table does: ' & $problem",
    ),
    // A waiting starter need not wait until its own timeout.
    TellFailure: call("sfn:sendTaskFailure", {
      Arguments: {
        TaskToken: jsonata("$taskToken"),
        Error: jsonata("$failure.Error"),
        Cause: jsonata("$failure.Cause"),
      },
      Next: "NotBegun",
      Catch: [catching("States.ALL", "NotBegun")],
    }),
    NotBegun: fail(jsonata("$failure.Error"), jsonata("$failure.Cause")),
    RenewFirst: renewal(
      keptRequests(terms).renewHeld,
      "IsAwaited",
      eventsOf.task,
      catching("States.ALL", "Doubt", { Assign: { ...notRenewed(eventsOf.task), ...trouble } }),
    ),
    PauseFirst: wait("1", "RenewFirst"),
    IsAwaited: choice([rule("$taskToken != ''", "Answer")], "GoOn"),
    Answer: callOnce("sfn:sendTaskSuccess", {
      // The present handle of the lease.
      Arguments: {
        TaskToken: jsonata("$taskToken"),
        Output: jsonata("$string({'version': $version, 'expiresAt': $expiresAt})"),
      },
      TimeoutSeconds: patienceSeconds,
      Assign: answered,
      Next: "GoOn",
      Catch: [
        // An earlier answer may have arrived. If the workflow does not wait any more, it has released the lease, and
        // the next renewal notices that.
        catching("Sfn.TaskTimedOutException", "GoOn", { Assign: answered }),
        catching("Sfn.TaskDoesNotExistException", "GoOn", { Assign: answered }),
        catching("States.ALL", "AnswerAgain", {
          Assign: {
            answers: jsonata("$answers + 1"),
            ...trouble,
            ...counted(eventsOf.task + 2 * eventsOf.choice + eventsOf.wait),
          },
        }),
      ],
    }),
    AnswerAgain: choice(
      [rule("$denied", "NotPermitted"), rule(`$answers < ${mostAnswers}`, "PauseFirst")],
      "GoOn",
    ),
    GoOn: {
      ...choice([rule(isAlone, "HoldOn", onward), rule("$blindLooks > 0", "PauseUnseen", onward)], "Pause1"),
      Assign: onward,
    },
    Refuse: fail(
      "InvalidOptionsError",
      "the input has to be { lease, guarded } or { lease, until }, and perhaps taskToken: lease is what lease.toJSON() of " +
        "a lock or a permit gives, of this keeper's table; guarded is the ARN of the execution to watch, of a standard workflow; until is in " +
        "epoch milliseconds; taskToken is answered when the lease is proven and renewed",
    ),
  };
}

/** The end of a keeper before the work begins; it reports the failure to a waiting starter. */
function failing(error: string, cause: string, first: readonly Json[] = []): State {
  const failure = { Error: error, Cause: jsonata(cause) };
  const isAlone = rule("$taskToken = ''", "NotBegun", { failure });
  return { ...choice([...first, isAlone], "TellFailure"), Assign: { failure } };
}

/** A renewal by the keeper; `events` are those of its states since the last count. */
export function renewal(request: Json, next: string, events: number, failed: Json): State {
  return callOnce("dynamodb:updateItem", {
    Arguments: request,
    TimeoutSeconds: patienceSeconds,
    Assign: {
      version: jsonata("$version + 1"),
      ...renewedState,
      pause: jsonata("$beat"),
      ...counted(events),
    },
    Next: next,
    Catch: [catching(refused, "Inspect", { Assign: counted(events) }), failed],
  });
}

/** The variables that a failed renewal assigns: it may have landed, so the next renewal needs a newer version. */
export function notRenewed(events: number): Assigned {
  return {
    version: jsonata("$version + 1"),
    pause: 1,
    troubles: jsonata("$troubles + 1"),
    ...counted(events),
  };
}

function begin({ tableName }: LeaseTerms): State {
  const lease = "$states.input.lease";
  const isLease = isLeaseOf(lease, tableName);
  const beat = `$max([1, $floor(${lease}.leaseDurationMs / 3000)])`;
  const given = (name: string, otherwise: string): string =>
    jsonata(`$exists($states.input.${name}) ? $states.input.${name} : ${otherwise}`);
  const variables = {
    key: jsonata(`${lease}.key`),
    token: jsonata(`${lease}.token`),
    fence: jsonata(`${lease}.fencingToken`),
    version: jsonata(`${lease}.version`),
    leaseDurationMs: jsonata(`${lease}.leaseDurationMs`),
    expiresAt: jsonata(`${lease}.expiresAt`),
    sortKey: jsonata(sortKeyOf(lease)),
    seat: jsonata("''"),
    timeToLive: 0,
    beat: jsonata(beat),
    pause: 0,
    taskToken: given("taskToken", "''"),
    generation: given("generation", "0"),
    // Both the checked and the read attributes count.
    events: 2 * (eventsOf.choice + eventsOf.task),
    handOverAt: historyLimits.handOver,
    handOvers: 0,
    answers: 0,
    troubles: 0,
    blindLooks: 0,
    deniedLooks: 0,
    lookAt: 0,
    stops: 0,
    status: "UNKNOWN",
    denied: false,
    begun: false,
    isStopping: false,
    isHeld: true,
    isRevoked: false,
    loss: "nothing",
    problem: "the table has another holder for it, or none",
  };
  const isUntil = "$type($states.input.until) = 'number'";
  const alone = { ...variables, guarded: "nobody", until: jsonata("$states.input.until") };
  return choice(
    [
      rule(`${isLease} and ${isExecution("$states.input.guarded")}`, "Prove", {
        ...variables,
        guarded: jsonata("$states.input.guarded"),
        until: 0,
      }),
      // Only the table has the text that a renewal of a permit writes again.
      rule(`${isLease} and ${isUntil} and ${sortKeyOf(lease)} = '${permitSortKey}'`, "Prove", alone),
      rule(`${isLease} and ${isUntil}`, "RenewFirst", alone),
    ],
    "Refuse",
  );
}

/** JSONata that is true for a handle of a lock's or a permit's lease in this table. */
export function isLeaseOf(lease: string, tableName: string): string {
  return [
    ...["key", "token"].map((field) => `$type(${lease}.${field}) = 'string' and ${lease}.${field} != ''`),
    ...["fencingToken", "expiresAt"].map((field) => `$type(${lease}.${field}) = 'number'`),
    `${sortKeyOf(lease)} in ['${leaseSortKey}', '${permitSortKey}']`,
    // A later reader has to accept the version that a renewal writes.
    wholeUpTo(limits.handleVersion, `${lease}.version`),
    `(${sortKeyOf(lease)} != '${permitSortKey}' or ${lease}.version <= ${seatLimits.handleVersion})`,
    wholeUpTo(limits.durationMs, `${lease}.leaseDurationMs`),
    // A client may use the table's ARN in place of its name, and this keeper may use the ARN as well.
    `$split(${lease}.tableName & '', 'table/')[-1] = $split('${tableName}', 'table/')[-1]`,
  ].join(" and ");
}

/** JSONata that is true for the ARN of an execution of a standard workflow. */
export function isExecution(guarded: string): string {
  const form = "/^arn:[^:]+:states:[^:]+:[^:]+:execution:[^:]+:[^:]+$/";
  return `($type(${guarded}) = 'string' ? $contains(${guarded}, ${form}) : false)`;
}

/** JSONata that is true for a whole number from 1. Some interpreters do not stop at the first false part. */
function wholeUpTo(most: number, value: string): string {
  return `($type(${value}) = 'number' ? ${value} >= 1 and ${value} <= ${most} and $floor(${value}) = ${value} : false)`;
}
