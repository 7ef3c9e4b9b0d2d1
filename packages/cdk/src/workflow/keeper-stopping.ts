/**
 * A keeper stops the work repeatedly until the work is known to have ended. It renews a held lease meanwhile, and
 * releases it only then. So no other holder begins beside running work.
 *
 *     AskStopping ─▶ IsStopped ─▶ Stop ─▶ IsStopped ─▶ Release, ReleaseLost, Done or Lost
 *          ▲                        │ it fails
 *          │                        ▼
 *     PauseStopping ◀──────────── StillHeld
 *          ▲                        │ the lease is held
 *          └─────── RenewHeld ◀─────┘
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
  wait,
} from "./asl.ts";
import { notRenewed, renewal } from "./keeper-start.ts";
import { askGuarded, counted, errorText, eventsOf, historyLimits, isOver } from "./keeper-terms.ts";
import { keptRequests } from "./kept-requests.ts";
import type { LeaseTerms } from "./lease-requests.ts";

/** Longest pause between two attempts to stop work whose lease is lost. */
const longestPauseSeconds = 60;

/** The states that stop the work and end the keeper. */
export function stoppingStates(terms: LeaseTerms): Definition["States"] {
  const backOff = `$min([$power(2, $min([$stops - 1, 6])), ${longestPauseSeconds}])`;
  const release = (next: string) =>
    call("dynamodb:updateItem", {
      Arguments: keptRequests(terms).release,
      Next: next,
      // The lease is released already, or is another holder's: this keeper has nothing to release.
      Catch: [catching(refused, next)],
    });
  return {
    AskStopping: askGuarded("IsStopped", eventsOf.wait + eventsOf.task + eventsOf.choice, "GONE"),
    IsStopped: choice(
      [
        // If the work has ended by itself, that is no loss. A holder that was asked to stop has done so.
        rule(`${isOver} and $isHeld and ($isRevoked or $stops = 0)`, "Release"),
        rule(`${isOver} and $isHeld`, "ReleaseLost"),
        rule(`${isOver} and $stops = 0`, "Done"),
        rule(isOver, "Lost"),
        rule(`$events >= ${historyLimits.end}`, "NotStopped"),
        rule("$isHeld and $isRevoked and $events >= $handOverAt", "HandOver"),
      ],
      "Stop",
    ),
    Stop: callOnce("sfn:stopExecution", {
      Arguments: {
        ExecutionArn: jsonata("$guarded"),
        Error: "LeaseLostError",
        Cause: jsonata("$isRevoked ? $loss : 'the lease is lost: ' & $loss"),
      },
      TimeoutSeconds: jsonata("$max([1, $floor($beat / 2)])"),
      Assign: { status: "STOPPED", stops: jsonata("$stops + 1") },
      Next: "IsStopped",
      Catch: [
        catching(noSuchExecution, "IsStopped", {
          Assign: { status: "GONE", stops: jsonata("$stops + 1") },
        }),
        catching("States.ALL", "StillHeld", {
          Assign: {
            stops: jsonata("$stops + 1"),
            problem: errorText,
            ...counted(eventsOf.task + eventsOf.choice),
          },
        }),
      ],
    }),
    StillHeld: choice([rule("$isHeld", "RenewHeld")], "PauseStopping"),
    RenewHeld: renewal(
      keptRequests(terms).renewHeld,
      "PauseStopping",
      eventsOf.task,
      catching("States.ALL", "PauseStopping", { Assign: notRenewed(eventsOf.task) }),
    ),
    PauseStopping: wait(
      `$isHeld ? $max([1, $floor($min([$beat / 2, ${backOff}]))]) : $max([1, ${backOff}])`,
      "AskStopping",
    ),
    Release: release("AfterRelease"),
    // A failed execution may have been redriven a moment ago: then it works without a lease.
    AfterRelease: choice(
      [
        rule("$status in ['FAILED', 'TIMED_OUT', 'ABORTED', 'STOPPED']", "PauseStopping", {
          isStopping: true,
          isHeld: false,
          isRevoked: false,
          stops: 0,
          loss: "it was let go when its execution had ended, which was redriven since",
        }),
      ],
      "Done",
    ),
    ReleaseLost: release("Lost"),
    Lost: fail("LeaseLostError", jsonata("'the lease of ' & $key & ' is lost: ' & $loss")),
    NotStopped: fail(
      "WorkNotStoppedError",
      jsonata(
        "'the work under the lease of ' & $key & ' may run on, for it could not be stopped (' & $problem & '): ' & $loss",
      ),
    ),
  };
}
