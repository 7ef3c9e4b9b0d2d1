/**
 * A workflow around the user's own: it takes the lock, has it kept, does the work and lets the lock go.
 *
 * The names here are short; in the machine every state of ours begins with `Leasehold_`.
 *
 *     Begin ─▶ Acquire ─▶ StartKeeper ─▶ Work ─▶ Release ─▶ Done
 *                 │                        └─ it fails ─▶ ReleaseFailed ─▶ Failed
 *                 │ refused
 *                 ▼
 *              SeeHolder ─▶ JudgeHolder ─▶ TakeOver ─▶ StartKeeper     an expired lease
 *                 ▲                    ─▶ Park ─▶ Acquire              wakes by the release, or by its own clock
 *                 └─────── Revoke ◀─── ─▶ Skipped, Unavailable
 *
 * Where it takes a permit of a semaphore, what follows a refusal is in permit-states.ts.
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
  retryUnless,
  rule,
  type State,
  startedBy,
  succeed,
} from "./asl.ts";
import { isDenied, notPermittedError } from "./keeper-terms.ts";
import {
  acquireArguments,
  cancelArguments,
  closeArguments,
  inspectArguments,
  ofRecord,
  record,
  releaseArguments,
  takeOverArguments,
  wasBrokenIn,
  wasReleasedIn,
} from "./lease-requests.ts";
import { permitRecord } from "./permit-records.ts";
import {
  acquirePermitArguments,
  closePermitArguments,
  inspectPermitArguments,
  releasePermitArguments,
  takeOverPermitArguments,
} from "./permit-requests.ts";
import { type PermitWorkflowTerms, permitStates } from "./permit-states.ts";
import { failure, failureAs, refusingRedrive, unlessRedriven, withRefusals } from "./redrive-refusal.ts";
import { assigning, leaseVariable, own, variablePrefix, withStatePrefix } from "./reserved-names.ts";
import { canWait, judgeHolder, waiting } from "./waiting-states.ts";
import { leaseOf, ownerOfExecution, type WorkflowTerms } from "./workflow-terms.ts";

/** A keeper is ready in less than a second, unless Step Functions is slow. The lease is not renewed during this wait. */
const longestKeeperStartSeconds = 60;
/**
 * A lease is taken for so long at least: its keeper has to start within it, however short leases are. The keeper's first
 * renewal gives it the length that it is to have.
 */
const shortestStartMs = 60_000;
/** Names that a missing permission has, where Step Functions has a name of its own for it. */
const denials = ["States.Permissions", "Sfn.AccessDeniedException"] as const;
const sameInput = jsonata("$states.input");

/** Gives the definition of a leased workflow. */
export function workflowDefinition(given: WorkflowTerms): Definition {
  const terms = { ...given, variablePrefix };
  const { once } = terms;
  const startMs = Math.max(terms.leaseDurationMs, shortestStartMs);
  const requests =
    terms.permits === undefined ? ofLock(terms) : ofPermit({ ...terms, permits: terms.permits });
  return withStatePrefix({
    Comment: "Does its work under a lease.",
    StartAt: "Begin",
    States: {
      Begin: begin(terms),
      Acquire: grant(requests.acquire(startMs), terms),
      TakeOver: grant(requests.takeOver(startMs), terms),
      ...requests.states,
      StartKeeper: refusingRedrive(startKeeper(terms, startMs)),
      Work: {
        Type: "Parallel",
        QueryLanguage: "JSONata",
        // Redriven with too much data it runs from its beginning; else only the tasks inside refuse, and may be caught.
        Arguments: jsonata(unlessRedriven("$states.context.Execution.Input")),
        Branches: [withRefusals(terms.work)],
        Output: jsonata(unlessRedriven("$states.result[0]")),
        Next: terms.lockAtLeastForMs > 0 ? "IsEarly" : "Release",
        Catch: [catching("States.ALL", "ReleaseFailed", { Assign: failure })],
      },
      ...(terms.lockAtLeastForMs > 0
        ? {
            IsEarly: choice([rule(`${own("cooldownUntil")} > $millis()`, "Close")], "Release"),
            Close: end(requests.close, terms),
          }
        : {}),
      Release: end(requests.release, terms),
      Done: succeed(),
      SeeEnd: call("dynamodb:getItem", {
        ...requests.look,
        Output: sameInput,
        Next: "JudgeEnd",
        Catch: [catching("States.ALL", "LostAtEnd")],
      }),
      // A release whose answer was lost comes back as a refusal too.
      JudgeEnd: choice([rule(requests.wasReleased, "Done")], "LostAtEnd"),
      LostAtEnd: fail(
        "LeaseLostError",
        jsonata(
          `'the lease of ' & ${own("key")} & ' ended before its work did: it may have overlapped another holder'`,
        ),
      ),
      ReleaseFailed: letGo(requests.releaseFailed),
      Failed: fail(told("Error", "WorkFailed"), told("Cause", "the error came without a cause")),
      ...(terms.whenHeld === "skip" || once
        ? { Skipped: succeed({ skipped: true, key: jsonata(own("key")), reason: jsonata(own("reason")) }) }
        : {}),
      Refuse: fail(
        "InvalidOptionsError",
        `the input gives no key: ${terms.key} has to be a text of 1 to 2048 bytes${once ? ", and scheduledTime an ISO time that is not to come" : ""}`,
      ),
    },
  });
}

/** What differs between a lock and a permit. */
interface Requests {
  readonly acquire: (leaseDurationMs: number) => Json;
  readonly takeOver: (leaseDurationMs: number) => Json;
  readonly release: Json;
  readonly releaseFailed: Json;
  readonly close: Json;
  /** A look at the own lease. */
  readonly look: { readonly Arguments: Json; readonly Assign: Json };
  /** Whether that look, after a refused release, tells of an earlier copy of it. */
  readonly wasReleased: string;
  readonly states: Record<string, State>;
}

function ofLock(terms: WorkflowTerms): Requests {
  const { once } = terms;
  const look = { Arguments: inspectArguments(terms), Assign: assigning({ record }) };
  return {
    acquire: (leaseDurationMs) => acquireArguments(terms, leaseDurationMs, once),
    takeOver: (leaseDurationMs) => takeOverArguments(terms, leaseDurationMs),
    release: releaseArguments(terms, once),
    releaseFailed: releaseArguments(terms, false),
    close: closeArguments(terms, once),
    look,
    wasReleased: wasReleasedIn(terms),
    states: {
      SeeHolder: call("dynamodb:getItem", {
        ...look,
        Next: "JudgeHolder",
        Catch: [catching("States.ALL", "Cancel", { Assign: failure })],
      }),
      JudgeHolder: judgeHolder(terms),
      ...waiting(terms),
      Cancel: letGo(cancelArguments(terms)),
      Unavailable: fail(
        "LeaseUnavailableError",
        jsonata(`'the lock ' & ${own("key")} & ' is held by ' & ${ofRecord("owner", "S", terms)}`),
      ),
    },
  };
}

function ofPermit(terms: PermitWorkflowTerms): Requests {
  const isGone = `$not($exists(${ofRecord("token", "S", terms)}) or ${wasBrokenIn(terms)})`;
  return {
    acquire: (leaseDurationMs) => acquirePermitArguments(terms, leaseDurationMs),
    takeOver: (leaseDurationMs) => takeOverPermitArguments(terms, leaseDurationMs),
    release: releasePermitArguments(terms),
    releaseFailed: releasePermitArguments(terms),
    close: closePermitArguments(terms),
    look: {
      Arguments: inspectPermitArguments(terms),
      Assign: assigning({ record: permitRecord(terms) }),
    },
    // Another holder's release may have overwritten the mark of this one since.
    wasReleased: `${wasReleasedIn(terms)} or ${own("retries")} > 0 and ${isGone}`,
    states: permitStates(terms),
  };
}

function begin(terms: WorkflowTerms): State {
  const { key, waitMs, once } = terms;
  const slot = "$fromMillis($toMillis($states.input.scheduledTime))";
  const isKey = `($type(${key}) = 'string' ? $length(${key}) > 0 and $length(${key}) <= 2048 : false)`;
  // A slot that is done before its time would keep out every run until then.
  const isTime =
    "($type($states.input.scheduledTime) = 'string' " +
    `? $toMillis($states.input.scheduledTime) <= $millis() + ${limits.slotAheadMs} : false)`;
  const variables = assigning({
    key: jsonata(key),
    token: jsonata("$uuid()"),
    version: 0,
    owner: jsonata(ownerOfExecution("$states.context.Execution.Id")),
    waitingSince: jsonata("$millis()"),
    waitUntil: jsonata(`$millis() + ${waitMs}`),
    ...(canWait(terms) ? { parks: 0, watched: {} } : {}),
    // The same form as the middleware's, so that both compare.
    ...(once ? { slot: jsonata(slot) } : {}),
  });
  return choice([rule(once ? `${isKey} and ${isTime}` : isKey, "Acquire", variables)], "Refuse");
}

/**
 * Takes the lock. After a refusal it reads the holder; after a failure it takes back a write that may have landed.
 */
function grant(request: Json, terms: WorkflowTerms): State {
  const version = assigning({ version: jsonata(`${own("version")} + 1`) });
  const task = call("dynamodb:updateItem", {
    Arguments: request,
    Assign: { ...version, ...leaseOf("$states.result.Attributes", terms) },
    Next: "StartKeeper",
    Catch: [
      catching(refused, "SeeHolder", { Assign: version }),
      catching("States.ALL", "Cancel", { Assign: { ...version, ...failure } }),
    ],
  });
  return refusingRedrive(task);
}

/**
 * Starts the keeper and waits until it has proven the lease and renewed it: work never begins without a working
 * keeper. Each attempt has a token of its own, and so an execution of its own. Two keepers of one lease do no harm,
 * and a keeper that comes too late finds the lease released.
 */
function startKeeper({ keeperArn }: WorkflowTerms, startMs: number): State {
  const name = `$hash(${own("token")}, 'SHA-256') & '-0-'`;
  const notReady = {
    Error: "KeeperNotReadyError",
    Cause: jsonata(
      `'the keeper of the lease did not prove and renew it in time: see its execution ' & ${name} & '0 of ${keeperArn}'`,
    ),
  };
  const notStarted =
    `$states.errorOutput.Error != '${notPermittedError}' and ${isDenied} ` +
    `? {'Error': '${notPermittedError}', 'Cause': 'its keeper may not be started: ' & $string($states.errorOutput)} ` +
    ": $states.errorOutput";
  const input =
    "{'lease': $lease, 'guarded': $states.context.Execution.Id, 'taskToken': $states.context.Task.Token, " +
    `${startedBy}}`;
  return call("sfn:startExecution.waitForTaskToken", {
    Arguments: {
      StateMachineArn: keeperArn,
      Name: jsonata(`${name} & $string($states.context.State.RetryCount)`),
      Input: jsonata(`$string(${input})`),
    },
    TimeoutSeconds: Math.min(longestKeeperStartSeconds, Math.floor(startMs / 1500)),
    Retry: retryUnless(notPermittedError, ...denials),
    // Its first renewal has given the lease another end.
    Assign: { [leaseVariable]: jsonata(`$merge([$${leaseVariable}, $states.result])`) },
    Next: "Work",
    Catch: [
      catching("States.Timeout", "Cancel", { Assign: assigning({ failure: notReady }) }),
      catching("States.ALL", "Cancel", { Assign: failureAs(notStarted) }),
    ],
  });
}

/**
 * Ends the lease of work that succeeded. When the release is not confirmed, the keeper does it: the work's result
 * stays.
 */
function end(request: Json, { permits }: WorkflowTerms): State {
  const retries = assigning({ retries: jsonata("$states.context.State.RetryCount") });
  return call("dynamodb:updateItem", {
    Arguments: request,
    Output: sameInput,
    Next: "Done",
    Catch: [
      catching(refused, "SeeEnd", {
        ...(permits === undefined ? {} : { Assign: retries }),
        Output: sameInput,
      }),
      catching("States.ALL", "Done", { Output: sameInput }),
    ],
  });
}

/** A part of the failure that led here. A Fail state need not name its error, nor its cause. */
function told(part: "Error" | "Cause", otherwise: string): string {
  const field = `${own("failure")}.${part}`;
  return jsonata(`$exists(${field}) and ${field} != '' ? ${field} : ${literal(otherwise)}`);
}

/** Ends a lease before a failure. The execution reports that failure, whatever the result of the release. */
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
      // CloudFormation puts values that only the deployment knows between the quotes, unchanged.
      return typeof resolved === "string" ? literal(resolved) : `"${key}"`;
    },
  });
}
