/**
 * A workflow around the user's own: it takes the lock, has it kept, does the work and lets the lock go.
 *
 *     Begin ─▶ Acquire ─▶ StartKeeper ─▶ Work ─▶ Release ─▶ Done
 *                 │                        └─ it fails ─▶ ReleaseFailed ─▶ Failed
 *                 │ refused
 *                 ▼
 *              SeeHolder ─▶ JudgeHolder ─▶ TakeOver ─▶ StartKeeper     an expired lease
 *                 ▲                    ─▶ Park ─▶ Acquire              wakes by the release, or by its own clock
 *                 └─────── Revoke ◀─── ─▶ Skipped, Unavailable
 */
import { limits } from "@leasehold/client/schema";
import { Lazy, Token } from "aws-cdk-lib";
import {
  call,
  catching,
  choice,
  type Definition,
  fail,
  type Json,
  jsonata,
  literal,
  refused,
  rule,
  type State,
  startedBefore,
  succeed,
} from "./asl.ts";
import {
  acquireArguments,
  attributeOf,
  cancelArguments,
  closeArguments,
  inspectArguments,
  record,
  releaseArguments,
  takeOverArguments,
  wasReleased,
} from "./lease-requests.ts";
import { judgeHolder, waiting } from "./waiting-states.ts";
import { leaseOf, type WorkflowTerms } from "./workflow-terms.ts";

const sameInput = jsonata("$states.input");

/** Gives the definition of a leased workflow. */
export function workflowDefinition(terms: WorkflowTerms): Definition {
  const { once, leaseDurationMs } = terms;
  return {
    Comment: "Does its work under a lease.",
    StartAt: "Begin",
    States: {
      Begin: begin(terms),
      Acquire: grant(acquireArguments(terms, leaseDurationMs, once), terms),
      SeeHolder: call("dynamodb:getItem", {
        Arguments: inspectArguments(terms),
        Assign: { record },
        Next: "JudgeHolder",
        Catch: [catching("States.ALL", "Cancel", { Assign: { failure: jsonata("$states.errorOutput") } })],
      }),
      JudgeHolder: judgeHolder(terms),
      TakeOver: grant(takeOverArguments(terms, leaseDurationMs), terms),
      ...waiting(terms),
      StartKeeper: startKeeper(terms),
      Work: {
        Type: "Parallel",
        QueryLanguage: "JSONata",
        Arguments: jsonata("$states.context.Execution.Input"),
        Branches: [terms.work],
        Output: jsonata("$states.result[0]"),
        Next: terms.lockAtLeastForMs > 0 ? "IsEarly" : "Release",
        Catch: [
          catching("States.ALL", "ReleaseFailed", { Assign: { failure: jsonata("$states.errorOutput") } }),
        ],
      },
      ...(terms.lockAtLeastForMs > 0
        ? {
            IsEarly: choice([rule("$closedUntil > $millis()", "Close")], "Release"),
            Close: end(closeArguments(terms, once)),
          }
        : {}),
      Release: end(releaseArguments(terms, once)),
      Done: succeed(),
      SeeEnd: call("dynamodb:getItem", {
        Arguments: inspectArguments(terms),
        Assign: { record },
        Output: sameInput,
        Next: "JudgeEnd",
        Catch: [catching("States.ALL", "LostAtEnd")],
      }),
      // A release whose answer was lost comes back as a refusal too.
      JudgeEnd: choice([rule(wasReleased, "Done")], "LostAtEnd"),
      LostAtEnd: fail(
        "LeaseLostError",
        jsonata(
          "'the lease of ' & $key & ' ended before its work did: it may have overlapped another holder'",
        ),
      ),
      ReleaseFailed: letGo(releaseArguments(terms, false)),
      Cancel: letGo(cancelArguments(terms)),
      Failed: fail(jsonata("$failure.Error"), jsonata("$failure.Cause")),
      ...(terms.whenHeld === "skip" || once
        ? { Skipped: succeed({ skipped: true, key: jsonata("$key"), reason: jsonata("$reason") }) }
        : {}),
      Unavailable: fail(
        "LeaseUnavailableError",
        jsonata(`'the lock ' & $key & ' is held by ' & ${attributeOf("$record", "owner", "S")}`),
      ),
      Refuse: fail(
        "InvalidOptionsError",
        `the input gives no key: ${terms.key} has to be a text of 1 to 2048 bytes${once ? ", and scheduledTime an ISO time that is not to come" : ""}`,
      ),
    },
  };
}

function begin({ key, waitMs, once }: WorkflowTerms): State {
  const slot = "$fromMillis($toMillis($states.input.scheduledTime))";
  const isKey = `($type(${key}) = 'string' ? $length(${key}) > 0 and $length(${key}) <= 2048 : false)`;
  // A slot that is done before its time would keep out every run until then.
  const isTime =
    "($type($states.input.scheduledTime) = 'string' " +
    `? $toMillis($states.input.scheduledTime) <= $millis() + ${limits.slotAheadMs} : false)`;
  const variables = {
    key: jsonata(key),
    token: jsonata("$uuid()"),
    version: 0,
    owner: jsonata("'workflow:' & $states.context.Execution.Name"),
    waitingSince: jsonata("$millis()"),
    waitUntil: jsonata(`$millis() + ${waitMs}`),
    parks: 0,
    // The same form as the middleware's, so that both compare.
    ...(once ? { slot: jsonata(slot) } : {}),
  };
  return choice([rule(once ? `${isKey} and ${isTime}` : isKey, "Acquire", variables)], "Refuse");
}

/** Takes the lock; a refusal leads to whoever holds it, and a failure to taking back what may have landed. */
function grant(request: Json, terms: WorkflowTerms): State {
  const version = { version: jsonata("$version + 1") };
  return call("dynamodb:updateItem", {
    Arguments: request,
    Assign: { ...version, ...leaseOf("$states.result.Attributes", terms) },
    Next: "StartKeeper",
    Catch: [
      catching(refused, "SeeHolder", { Assign: version }),
      catching("States.ALL", "Cancel", { Assign: { ...version, failure: jsonata("$states.errorOutput") } }),
    ],
  });
}

function startKeeper({ keeperArn }: WorkflowTerms): State {
  return call("sfn:startExecution", {
    Arguments: {
      StateMachineArn: keeperArn,
      Name: jsonata("$hash($token, 'SHA-256') & '-0'"),
      Input: jsonata("$string({'lease': $lease, 'guarded': $states.context.Execution.Id})"),
    },
    Next: "Work",
    Catch: [
      catching(startedBefore, "Work"),
      catching("States.ALL", "Cancel", { Assign: { failure: jsonata("$states.errorOutput") } }),
    ],
  });
}

/** Ends the lease of work that succeeded. What is not confirmed is left to the keeper: the work's result stands. */
function end(request: Json): State {
  return call("dynamodb:updateItem", {
    Arguments: request,
    Output: sameInput,
    Next: "Done",
    Catch: [
      catching(refused, "SeeEnd", { Output: sameInput }),
      catching("States.ALL", "Done", { Output: sameInput }),
    ],
  });
}

/** Ends a lease on the way to a failure, which is what the execution reports whatever becomes of the release. */
function letGo(request: Json): State {
  return call("dynamodb:updateItem", {
    Arguments: request,
    Next: "Failed",
    Catch: [catching("States.ALL", "Failed")],
  });
}

/** JSONata for a key that the construct gives; a token of CDK resolves to text as well. */
export function fixedKey(key: string): string {
  if (!Token.isUnresolved(key)) return literal(key);
  return Lazy.uncachedString({
    produce(context) {
      const resolved: unknown = context.resolve(key);
      // What only a deployment knows is put between the quotes by CloudFormation, as it is.
      return typeof resolved === "string" ? literal(resolved) : `"${key}"`;
    },
  });
}
