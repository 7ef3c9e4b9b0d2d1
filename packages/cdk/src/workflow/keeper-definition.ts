/**
 * The keeper: a state machine that renews a lease for a holder without its own thread.
 *
 *     start ─▶ Pause1 ─▶ Renew1 ─▶ Pause2 ─▶ … ─▶ Renew5 ─▶ AskGuarded ─▶ Decide ─▶ Pause1      2.4 transitions a beat
 *                                                                          │
 *                              it ended: Release ─▶ Done ◀─────────────────┤
 *                              long history: HandOver ─▶ HandedOver ◀──────┘
 *
 *     AskGuarded fails ─▶ PauseUnseen ─▶ RenewUnseen ─▶ Decide ─▶ PauseUnseen, for longer and longer ─▶ AskGuarded
 *
 *     Renew is refused ─▶ Inspect ─▶ JudgeLease ─▶ released: Done · still ours: Pause1 · lost, or asked to stop: AskStopping
 *     Renew fails ─▶ Doubt ─▶ Pause1, for a second · no time for another attempt: AskStopping
 *
 *     A lost permit, or a lock that others have had since: JudgeLease ─▶ PauseStopping ─▶ AskStopping, for the item may not
 *     tell any more that it was released
 *
 *     start ─▶ HoldOn ─▶ DecideAlone ─▶ RenewAlone ─▶ HoldOn      for a person or a container: 3 transitions a beat
 *
 * A lease is a lock's or a permit's: kept-requests.ts has the requests of both.
 *
 * The start is in keeper-start.ts, and what follows AskStopping in keeper-stopping.ts.
 */
import {
  callOnce,
  catching,
  choice,
  type Definition,
  jsonata,
  rule,
  type State,
  startedBy,
  succeed,
  wait,
} from "./asl.ts";
import { isAlone, isOurs, notRenewed, renewal, startingStates } from "./keeper-start.ts";
import { stoppingStates } from "./keeper-stopping.ts";
import {
  beatsBetweenLooks,
  counted,
  errorText,
  eventsOf,
  historyLimits,
  isOver,
  patienceSeconds,
  stopping,
} from "./keeper-terms.ts";
import { isPermit, keptRecord, keptRequests, recordedState } from "./kept-requests.ts";
import { attributeOf, type LeaseTerms, ofRecord, wasHeldSince, wasReleased } from "./lease-requests.ts";

/** After this many beats in a row with trouble, the keeper looks as well. */
const troublesBetweenLooks = 5;
/** After this many denied looks, the keeper stops the work: it must not hold the lock for ever. */
const mostDeniedLooks = 6;

/**
 * No time is left for another attempt, which would come a second later: the work is stopped while the lease is
 * unexpired.
 */
const isTimeUp = "$millis() + 1000 >= $expiresAt";
const notInTime = jsonata("'it could not be renewed in time: ' & $problem");
/** The last look has failed. */
const isUnseen = "$blindLooks > 0";

/**
 * Returns the keeper's definition. Its input is `{ lease, guarded }` or `{ lease, until }`, and perhaps `taskToken`.
 */
export function keeperDefinition(terms: LeaseTerms): Definition {
  return {
    Comment: "Renews a lease while the work that it protects goes on.",
    StartAt: "Begin",
    States: {
      ...startingStates(terms),
      ...beats(terms),
      Decide: choice(
        [
          rule("$denied and $not($begun)", "NotPermitted"),
          rule(isOver, "Release"),
          stopping(`$deniedLooks >= ${mostDeniedLooks}`, {
            isHeld: true,
            loss: jsonata("'its keeper may not see any more whether its work goes on: ' & $problem"),
          }),
          stopping(`$events >= ${historyLimits.giveUp}`, {
            isHeld: true,
            loss: "no other execution could take over from its keeper, whose history is full",
          }),
          rule("$events >= $handOverAt", "HandOver"),
          rule("$not($begun)", "RenewFirst"),
          rule(`${isUnseen} and $millis() >= $lookAt`, "AskGuarded"),
          rule(isUnseen, "PauseUnseen"),
        ],
        "Pause1",
      ),
      // Until the next look is due: the beats above would look too soon.
      PauseUnseen: wait("$pause", "RenewUnseen"),
      RenewUnseen: renew(terms, "Decide", eventsOf.choice),
      HoldOn: wait("$pause", "DecideAlone"),
      DecideAlone: choice(
        [
          rule("$millis() >= $until", "Release"),
          rule(`$events >= ${historyLimits.giveUp}`, "Lost", {
            loss: "no other execution could take over from its keeper, whose history is full",
          }),
          rule("$events >= $handOverAt", "HandOver"),
        ],
        "RenewAlone",
      ),
      RenewAlone: renew(terms, "HoldOn", eventsOf.choice),
      Inspect: callOnce("dynamodb:getItem", {
        Arguments: keptRequests(terms).inspect,
        TimeoutSeconds: patienceSeconds,
        Assign: { record: keptRecord, ...counted(eventsOf.task + eventsOf.choice) },
        Next: "JudgeLease",
        Catch: [
          catching("States.ALL", "Doubt", {
            Assign: { ...notRenewed(eventsOf.task + eventsOf.choice), problem: errorText },
          }),
        ],
      }),
      JudgeLease: judgeLease(),
      Doubt: choice(
        [
          rule("$isStopping", "PauseStopping"),
          rule("$denied and $not($begun)", "NotPermitted"),
          stopping(`${isTimeUp} and $not(${isAlone})`, { isHeld: false, loss: notInTime }),
          rule(isTimeUp, "Lost", { loss: notInTime }),
          rule("$not($begun)", "PauseFirst"),
          rule(isAlone, "HoldOn"),
          rule(`${isUnseen} and $troubles >= ${troublesBetweenLooks}`, "Decide"),
          rule(isUnseen, "PauseUnseen"),
          rule(`$troubles >= ${troublesBetweenLooks}`, "AskGuarded"),
        ],
        "Pause1",
      ),
      HandOver: handOver(),
      HandedOver: succeed({ handedOver: true }),
      Done: succeed({ handedOver: false }),
      ...stoppingStates(terms),
    },
  };
}

/** The beats between two looks, one after the other. A loop with a counter would cost one more transition for each. */
function beats(terms: LeaseTerms): Record<string, State> {
  const states: Record<string, State> = {};
  for (let number = 1; number <= beatsBetweenLooks; number += 1) {
    const next = number === beatsBetweenLooks ? "AskGuarded" : `Pause${number + 1}`;
    states[`Pause${number}`] = wait("$pause", `Renew${number}`);
    states[`Renew${number}`] = renew(terms, next, 0);
  }
  return states;
}

/** A beat's renewal; `events` are the events of the beat's other states except its pause. */
function renew(terms: LeaseTerms, next: string, events: number): State {
  const ofBeat = eventsOf.wait + eventsOf.task + events;
  // Repeated through Doubt, which first checks the time that is left.
  const Assign = { ...notRenewed(ofBeat + eventsOf.choice), problem: errorText };
  return renewal(keptRequests(terms).renew, next, ofBeat, catching("States.ALL", "Doubt", { Assign }));
}

/** Judges a refused renewal: another renewer of the same lease, a request to stop, a release, or a loss. */
function judgeLease(): State {
  const isRevoked = `$exists(${attributeOf("$record", "revocation", "S")})`;
  const loss = jsonata(
    `$exists(${ofRecord("token", "S")}) ? 'another holder has it' : 'it was broken, or expired and was removed'`,
  );
  const carryOn = {
    ...recordedState,
    pause: jsonata("$beat"),
    troubles: jsonata("$troubles + 1"),
    problem: "somebody else renews it too",
    ...counted(eventsOf.choice),
  };
  return choice(
    [
      rule(`${isOurs} and $isStopping`, "PauseStopping", recordedState),
      rule(`${isOurs} and $not($begun)`, "RenewFirst", recordedState),
      stopping(`${isOurs} and ${isRevoked} and $not(${isAlone})`, {
        ...recordedState,
        isHeld: true,
        isRevoked: true,
        loss: "the holder of the lease was asked to stop",
      }),
      rule(`${isOurs} and ${isRevoked}`, "Lost", { loss: "its holder was asked to stop" }),
      rule(isOurs, "Doubt", carryOn),
      rule(wasReleased(), "Done"),
      // Another holder's release may have overwritten the mark of this lease's release. Work that has released its
      // lease ends within the pause, and its description shows that.
      rule(`(${isPermit} or ${wasHeldSince}) and $not(${isAlone})`, "PauseStopping", {
        isStopping: true,
        stops: 0,
        isHeld: false,
        isRevoked: false,
        loss,
      }),
      stopping(`$not(${isAlone})`, { isHeld: false, isRevoked: false, loss }),
    ],
    "Lost",
  );
}

/**
 * Starts a fresh execution, and ends only when that execution has proven the lease and renewed it. It comes right after
 * a renewal, and waits at most one beat.
 */
function handOver(): State {
  const lease = ["key", "token", "version", "leaseDurationMs", "expiresAt"]
    .map((name) => `'${name}': $${name}`)
    .join(", ");
  const input = [
    `{'lease': $merge([$states.context.Execution.Input.lease, {${lease}}]), 'generation': $generation + 1}`,
    `(${isAlone} ? {'until': $until} : {'guarded': $guarded})`,
    `{'taskToken': $states.context.Task.Token, ${startedBy}}`,
  ].join(", ");
  return callOnce("sfn:startExecution.waitForTaskToken", {
    Arguments: {
      StateMachineArn: jsonata("$states.context.StateMachine.Id"),
      Name: jsonata("$hash($token, 'SHA-256') & '-' & $string($generation + 1) & '-' & $string($handOvers)"),
      Input: jsonata(`$string($merge([${input}]))`),
    },
    TimeoutSeconds: jsonata("$beat"),
    Next: "HandedOver",
    // The lease has to be renewed before another attempt.
    Catch: [
      catching("States.ALL", "Doubt", {
        Assign: {
          handOverAt: jsonata(`$events + ${historyLimits.retryHandOver}`),
          handOvers: jsonata("$handOvers + 1"),
          pause: 0,
          ...counted(eventsOf.task + 1 + eventsOf.choice),
        },
      }),
    ],
  });
}
