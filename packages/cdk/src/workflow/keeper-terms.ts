/**
 * What the parts of the keeper's definition share. Variables are the keeper's own: nothing else runs in its machine.
 */
import { callOnce, catching, type Json, jsonata, noSuchExecution, rule, type State } from "./asl.ts";

/**
 * A keeper counts the events of its history, since Step Functions ends an execution at 25,000 of them. Between the
 * first attempt to hand over and the last one lie 10 minutes for the shortest lease, and 10 hours for one of 3 minutes.
 */
export const historyLimits: {
  readonly handOver: number;
  readonly retryHandOver: number;
  readonly giveUp: number;
  readonly end: number;
} = {
  /** From here on a fresh execution is to take over. */
  handOver: 12_000,
  /** So many events after a failed attempt comes the next one: about ten beats. */
  retryHandOver: 80,
  /** No other keeper has taken over: the work is stopped while the history still has room for it. */
  giveUp: 18_000,
  /** The work could not be stopped either: the keeper fails, and says so, before Step Functions ends it without a word. */
  end: 24_500,
};

/** Events of a state in a history. */
export const eventsOf: { readonly wait: number; readonly task: number; readonly choice: number } = {
  wait: 2,
  task: 5,
  choice: 2,
};

/** Assigns the count of events, with so many more. */
export function counted(events: number): { readonly events: Json } {
  return { events: jsonata(`$events + ${events}`) };
}

/** How a keeper fails that lacks a permission. */
export const notPermittedError = "KeeperNotPermittedError";
/** How a keeper fails whose lease is not that of the work that it is to guard. */
export const notProvenError = "LeaseNotProvenError";

/** Whether the execution has ended whose status is in the variable `status`. */
export const isOver = "$not($status in ['RUNNING', 'PENDING_REDRIVE', 'UNKNOWN'])";

/** Whether a catcher's error is a missing permission; how Step Functions names it differs from service to service. */
export const isDenied = "$contains($string($states.errorOutput), /AccessDenied|not authorized/)";

/** A catcher's error, as text. */
export const errorText: string = jsonata("$string($states.errorOutput)");

/** The time limit of a request that may hang: a beat, and at most the time that is left of the lease. */
export const patienceSeconds: string = jsonata(
  "$max([1, $min([$beat, $floor(($expiresAt - $millis()) / 1000) - 1])])",
);

/** The guarded execution is looked at after so many beats: its end comes by an event, and this makes up for a lost one. */
export const beatsBetweenLooks = 5;
/** Looks that fail spread out, up to so many times their ordinary pause, and not beyond an hour. */
const mostSpread = 16;

/**
 * When to look again after a look that failed. The quota of DescribeExecution is the account's: keepers whose looks were
 * refused together must not come back together.
 */
const nextLook = jsonata(
  `($look := ${1000 * beatsBetweenLooks} * $beat; ` +
    `$longest := $min([${mostSpread} * $look, $power(2, $blindLooks + 1) * $look, $max([$look, 3600000])]); ` +
    "$millis() + $look + $floor($random() * ($longest - $look)))",
);

/**
 * Asks for the guarded execution's status, and for nothing of its input and output: each may be as large as a state's
 * whole data. Not repeated: a renewal must not wait for it.
 */
export function askGuarded(next: string, events: number, gone: string): State {
  const seen = { blindLooks: 0, deniedLooks: 0, troubles: 0, ...counted(events) };
  return callOnce("sfn:describeExecution", {
    Arguments: { ExecutionArn: jsonata("$guarded"), IncludedData: "METADATA_ONLY" },
    TimeoutSeconds: patienceSeconds,
    Assign: { status: jsonata("$states.result.Status"), ...seen },
    Next: next,
    Catch: [
      catching(noSuchExecution, next, { Assign: { status: gone, ...seen } }),
      // No sign of anything: least of all a refusal for throttling. Only a missing permission counts, for it lasts.
      catching("States.ALL", next, {
        Assign: {
          status: "UNKNOWN",
          troubles: 0,
          ...counted(events),
          blindLooks: jsonata("$blindLooks + 1"),
          lookAt: nextLook,
          deniedLooks: jsonata(`$deniedLooks + (${isDenied} ? 1 : 0)`),
          denied: jsonata(`$denied or ${isDenied}`),
          problem: jsonata(`${isDenied} ? $string($states.errorOutput) : $problem`),
        },
      }),
    ],
  });
}

/** A way into the states that stop the work; the lease is renewed meanwhile where it is still held. */
export function stopping(
  condition: string,
  more: { readonly isHeld: boolean; readonly loss: string; readonly [name: string]: Json },
): Json {
  return rule(condition, "AskStopping", { isStopping: true, stops: 0, ...more });
}
