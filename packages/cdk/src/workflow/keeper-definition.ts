/**
 * The keeper: a state machine that renews a lease for a holder that has no thread of its own.
 *
 *     Begin ─▶ Pause ─▶ AskGuarded ─▶ Decide ─▶ Renew ─┐       guarded: 4 transitions and 1 write a beat
 *               ▲                       │              │
 *               └───────────────────────┼──────────────┘
 *                 it ended ─────────────┼─▶ Release ─▶ Done
 *                 it was asked to stop ─┼─▶ StopRevoked ─▶ Release
 *                 long history ─────────┴─▶ HandOver ─▶ HandedOver
 *
 *     Renew is refused ─▶ Inspect ─▶ JudgeLease ─▶ released: Done · still ours: Pause · lost: AskOnce ─▶ StopLost ─▶ Lost
 *
 *     Begin ─▶ HoldOn ─▶ DecideAlone ─▶ RenewAlone ─▶ HoldOn    for a person or a container: 3 transitions a beat
 */
import {
  call,
  callOnce,
  catching,
  choice,
  type Definition,
  fail,
  jsonata,
  noSuchExecution,
  refused,
  rule,
  type State,
  startedBefore,
  succeed,
  wait,
} from "./asl.ts";
import {
  attributeOf,
  inspectArguments,
  type LeaseTerms,
  ofRecord,
  record,
  releaseArguments,
  renewArguments,
  wasReleased,
} from "./lease-requests.ts";

/**
 * Beats before a fresh execution takes over. A beat makes 14 events, also one whose renewal failed: a history
 * stays far below the 25,000 events at which Step Functions ends an execution, also while a hand-over fails.
 */
export const beatsBeforeHandOver = 1_000;
/** How many beats pass before a hand-over that failed is tried again. */
const beatsBetweenHandOvers = 10;

/** A keeper that cannot see its guarded execution for so many beats lets the lease expire, or it would keep it for ever. */
const mostBlindBeats = 20;

const beat = "$max([1, $floor($leaseDurationMs / 3000)])";
const isTimeUp = "$millis() >= $expiresAt";

/** Gives the keeper's definition. Its input is `{ lease, guarded }` or `{ lease, until }`. */
export function keeperDefinition(terms: LeaseTerms): Definition {
  return {
    Comment: "Renews a lease while the work that it protects goes on.",
    StartAt: "Begin",
    States: {
      Begin: begin(terms),
      Pause: wait("$pause", "AskGuarded"),
      AskGuarded: askGuarded("Decide", "UNKNOWN"),
      Decide: choice(
        [
          rule("$not($status in ['RUNNING', 'PENDING_REDRIVE', 'UNKNOWN'])", "Release"),
          rule("$revoked", "StopRevoked"),
          rule(`$blindBeats >= ${mostBlindBeats}`, "Lost", {
            loss: "nobody can see whether its work goes on",
          }),
          rule(`$beats >= ${beatsBeforeHandOver}`, "HandOver"),
        ],
        "Renew",
      ),
      Renew: renew(terms, "Pause"),
      HoldOn: wait("$pause", "DecideAlone"),
      DecideAlone: choice(
        [
          rule("$millis() >= $until", "Release"),
          rule("$revoked", "Lost", { loss: "its holder was asked to stop" }),
          rule(`$beats >= ${beatsBeforeHandOver}`, "HandOver"),
        ],
        "RenewAlone",
      ),
      RenewAlone: renew(terms, "HoldOn"),
      Inspect: callOnce("dynamodb:getItem", {
        Arguments: inspectArguments(terms),
        Assign: { record },
        Next: "JudgeLease",
        Catch: [catching("States.ALL", "Doubt", { Assign: { pause: 1 } })],
      }),
      JudgeLease: judgeLease(),
      Doubt: choice(
        [
          rule(`${isTimeUp} and $guarded != 'nobody'`, "AskOnce", {
            loss: "it could not be renewed in time",
          }),
          rule(isTimeUp, "Lost", { loss: "it could not be renewed in time" }),
          rule("$guarded != 'nobody'", "Pause"),
        ],
        "HoldOn",
      ),
      AskOnce: askGuarded("StopIfRunning", "RUNNING"),
      StopIfRunning: choice([rule("$status in ['RUNNING', 'PENDING_REDRIVE']", "StopLost")], "Done"),
      StopLost: stop(jsonata("'the lease is lost: ' & $loss"), "Lost"),
      StopRevoked: stop("the holder of the lease was asked to stop", "Release"),
      Release: call("dynamodb:updateItem", {
        Arguments: releaseArguments(terms, false),
        Next: "Done",
        // Released already, or somebody else's: there is nothing of ours to let go.
        Catch: [catching(refused, "Done")],
      }),
      HandOver: handOver(),
      HandedOver: succeed({ handedOver: true }),
      Done: succeed({ handedOver: false }),
      Lost: fail("LeaseLostError", jsonata("'the lease of ' & $key & ' is lost: ' & $loss")),
      Refuse: fail(
        "InvalidOptionsError",
        "the input has to be { lease, guarded } or { lease, until }: lease is what lease.toJSON() gives, of this " +
          "keeper's table; guarded is the ARN of the execution to watch; until is in epoch milliseconds",
      ),
    },
  };
}

function begin({ tableName }: LeaseTerms): State {
  const lease = "$states.input.lease";
  const isLease = [
    ...["key", "token"].map((field) => `$type(${lease}.${field}) = 'string' and ${lease}.${field} != ''`),
    ...["version", "fencingToken", "leaseDurationMs", "expiresAt"].map(
      (field) => `$type(${lease}.${field}) = 'number'`,
    ),
    // Not every interpreter stops at the first part that is false.
    `($type(${lease}.leaseDurationMs) = 'number' ? ${lease}.leaseDurationMs > 0 : false)`,
    // A client may have been given the table's ARN in place of its name, and this keeper the ARN as well.
    `$split(${lease}.tableName & '', 'table/')[-1] = $split('${tableName}', 'table/')[-1]`,
  ].join(" and ");
  const variables = {
    key: jsonata(`${lease}.key`),
    token: jsonata(`${lease}.token`),
    fence: jsonata(`${lease}.fencingToken`),
    version: jsonata(`${lease}.version`),
    leaseDurationMs: jsonata(`${lease}.leaseDurationMs`),
    expiresAt: jsonata(`${lease}.expiresAt`),
    // A fresh execution that takes over begins at once, for its predecessor's last renewal is a beat ago.
    pause: jsonata(
      `$exists($states.input.generation) ? 0 : ${beat.replace("$leaseDurationMs", `${lease}.leaseDurationMs`)}`,
    ),
    generation: jsonata("$exists($states.input.generation) ? $states.input.generation : 0"),
    beats: 0,
    blindBeats: 0,
    revoked: false,
    loss: "nothing",
  };
  return choice(
    [
      rule(`${isLease} and $type($states.input.guarded) = 'string'`, "Pause", {
        ...variables,
        guarded: jsonata("$states.input.guarded"),
        until: 0,
      }),
      rule(`${isLease} and $type($states.input.until) = 'number'`, "HoldOn", {
        ...variables,
        guarded: "nobody",
        until: jsonata("$states.input.until"),
      }),
    ],
    "Refuse",
  );
}

/** Asks for the guarded execution's status; `otherwise` is what it counts as while Step Functions does not tell. */
function askGuarded(next: string, otherwise: string): State {
  // Not repeated: the renewal must not wait for it.
  return callOnce("sfn:describeExecution", {
    Arguments: { ExecutionArn: jsonata("$guarded") },
    Assign: { status: jsonata("$states.result.Status"), blindBeats: 0 },
    Next: next,
    Catch: [
      catching(noSuchExecution, next, { Assign: { status: "GONE" } }),
      catching("States.ALL", next, { Assign: { status: otherwise, blindBeats: jsonata("$blindBeats + 1") } }),
    ],
  });
}

function renew(terms: LeaseTerms, next: string): State {
  const attributes = "$states.result.Attributes";
  const isRevoked = `$exists(${attributeOf(attributes, "revocation", "S")})`;
  return callOnce("dynamodb:updateItem", {
    Arguments: renewArguments(terms),
    Assign: {
      version: jsonata("$version + 1"),
      beats: jsonata("$beats + 1"),
      expiresAt: jsonata(attributeOf(attributes, "expiresAt", "N")),
      revoked: jsonata(isRevoked),
      pause: jsonata(`${isRevoked} ? 0 : ${beat}`),
    },
    Next: next,
    Catch: [
      catching(refused, "Inspect"),
      // Repeated by way of Doubt, which looks at the time that is left first.
      catching("States.ALL", "Doubt", { Assign: { pause: 1, beats: jsonata("$beats + 1") } }),
    ],
  });
}

/** A refused renewal: one's own write that landed unseen, a release, another renewer of the same lease, or a loss. */
function judgeLease(): State {
  // A late copy of the acquisition may bring the token back, with another fencing token: for nobody.
  const isOurs = `${ofRecord("token", "S")} = $token and ${ofRecord("fence", "N")} = $fence`;
  const carryOn = {
    version: jsonata(ofRecord("version", "N")),
    expiresAt: jsonata(ofRecord("expiresAt", "N")),
    revoked: jsonata(`$exists(${attributeOf("$record", "revocation", "S")})`),
    beats: jsonata("$beats + 1"),
    pause: jsonata(beat),
  };
  const loss = jsonata(
    `$exists(${ofRecord("token", "S")}) ? 'another holder has it' : 'it was broken, or expired and was removed'`,
  );
  return choice(
    [
      rule(`${isOurs} and $guarded != 'nobody'`, "Pause", carryOn),
      rule(isOurs, "HoldOn", carryOn),
      rule(wasReleased, "Done"),
      // The guarded work may have released it, and another may have had it since: then it has ended by now.
      rule("$guarded != 'nobody'", "AskOnce", { loss }),
    ],
    "Lost",
  );
}

function stop(cause: string, next: string): State {
  return call("sfn:stopExecution", {
    Arguments: { ExecutionArn: jsonata("$guarded"), Error: "LeaseLostError", Cause: cause },
    Next: next,
    Catch: [catching(noSuchExecution, next)],
  });
}

function handOver(): State {
  const lease = ["key", "token", "version", "leaseDurationMs", "expiresAt"]
    .map((name) => `'${name}': $${name}`)
    .join(", ");
  const input = `{'lease': $merge([$states.context.Execution.Input.lease, {${lease}}]), 'generation': $generation + 1}`;
  const guard = "$guarded != 'nobody' ? {'guarded': $guarded} : {'until': $until}";
  // Not repeated at once: the lease has to be renewed first.
  return callOnce("sfn:startExecution", {
    Arguments: {
      StateMachineArn: jsonata("$states.context.StateMachine.Id"),
      Name: jsonata("$hash($token, 'SHA-256') & '-' & $string($generation + 1)"),
      Input: jsonata(`$string($merge([${input}, ${guard}]))`),
    },
    Next: "HandedOver",
    Catch: [
      catching(startedBefore, "HandedOver"),
      catching("States.ALL", "Doubt", {
        Assign: { beats: beatsBeforeHandOver - beatsBetweenHandOvers, pause: 0 },
      }),
    ],
  });
}
