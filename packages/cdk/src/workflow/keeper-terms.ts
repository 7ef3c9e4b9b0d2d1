/** The common parts of the keeper's definition. All variables are the keeper's: nothing else runs in its machine. */
import { callOnce, catching, type Json, jsonata, noSuchExecution, rule, type State } from "./asl.ts";

/**
 * A keeper counts the events of its history, because Step Functions ends an execution at 25,000 events. The time from
 * the first attempt to hand over to the last is 10 minutes for the shortest lease, and 10 hours for a lease of 3
 * minutes.
 */
export const historyLimits: {
  readonly handOver: number;
  readonly retryHandOver: number;
  readonly giveUp: number;
  readonly end: number;
} = {
  /** From this number on, the keeper tries to hand over to a fresh execution. */
  handOver: 12_000,
  /** The next attempt comes this many events after a failed one: about ten beats. */
  retryHandOver: 80,
  /** No other keeper has taken over: the work is stopped while the history still has room for that. */
  giveUp: 18_000,
  /** The work could not be stopped either: the keeper fails with an error, before Step Functions ends it silently. */
  end: 24_500,
};

/** Events of a state in a history. */
export const eventsOf: { readonly wait: number; readonly task: number; readonly choice: number } = {
  wait: 2,
  task: 5,
  choice: 2,
};

/** Adds to the count of events. */
export function counted(events: number): { readonly events: Json } {
  return { events: jsonata(`$events + ${events}`) };
}

/** The error of a keeper that lacks a permission. */
export const notPermittedError = "KeeperNotPermittedError";
/** The error of a keeper whose lease does not belong to the work that it has to guard. */
export const notProvenError = "LeaseNotProvenError";

/** Whether the execution with the status in the variable `status` has ended. */
export const isOver = "$not($status in ['RUNNING', 'PENDING_REDRIVE', 'MISSING', 'UNKNOWN'])";

/** Whether a catcher's error is a missing permission; Step Functions names it differently for each service. */
export const isDenied = "$contains($string($states.errorOutput), /AccessDenied|not authorized/)";

/** A catcher's error, as text. */
export const errorText: string = jsonata("$string($states.errorOutput)");

/** The time limit of a request that may hang: a beat, and at most the time that is left of the lease. */
export const patienceSeconds: string = jsonata(
  "$max([1, $min([$beat, $floor(($expiresAt - $millis()) / 1000) - 1])])",
);

/**
 * The keeper looks at the guarded execution after this many beats. An event reports the execution's end, and the look
 * makes up for a lost event.
 */
export const beatsBetweenLooks = 5;
/** After failed looks, the pause between looks grows up to this many times, and at most to an hour. */
const mostSpread = 16;

/**
 * The time of the next look after a failed one. The quota of DescribeExecution belongs to the account, so keepers whose
 * looks were refused together must not look together again.
 */
const nextLook = jsonata(
  `($look := ${1000 * beatsBetweenLooks} * $beat; ` +
    `$longest := $min([${mostSpread} * $look, $power(2, $blindLooks + 1) * $look, $max([$look, 3600000])]); ` +
    "$millis() + $look + $floor($random() * ($longest - $look)))",
);

/**
 * Reads the guarded execution's status, but not its input and output: each may be as large as a state's whole data. Not
 * repeated, because a renewal must not wait for it.
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
      // A failed look shows nothing, least of all a refusal by throttling. Only a missing permission counts, because it
      // lasts.
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

/** A transition to the states that stop the work. If the lease is still held, it is renewed meanwhile. */
export function stopping(
  condition: string,
  more: { readonly isHeld: boolean; readonly loss: string; readonly [name: string]: Json },
): Json {
  return rule(condition, "AskStopping", { isStopping: true, stops: 0, ...more });
}
