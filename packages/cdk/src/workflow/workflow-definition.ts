/**
 * A workflow around the user's own: it acquires the lock, starts its keeper, does the work and releases the lock.
 *
 * The names here are short; in the machine each of our states begins with `Leasehold_`.
 *
 *     Begin ─▶ Acquire ─▶ StartKeeper ─▶ Work ─▶ Release ─▶ Done
 *                 │                        └─ it fails ─▶ ReleaseFailed ─▶ Failed
 *                 │ refused
 *                 ▼
 *              SeeHolder ─▶ JudgeHolder ─▶ TakeOver ─▶ StartKeeper     an expired lease
 *                 ▲                    ─▶ Park ─▶ Acquire              wakes by the release, or by its own clock
 *                 └─────── Revoke ◀─── ─▶ Skipped, Unavailable
 *
 * For a permit of a semaphore, the states after a refusal are in permit-states.ts.
 */
import { limits } from "@leasehold/client/schema";
import { Lazy, Token } from "aws-cdk-lib";
import {
  call,
  catching,
  choice,
  type Definition,
  evaluationFailed,
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
  wasBroken,
  wasReleased,
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
import { leaseOf, letGo, ownerOfExecution, type WorkflowTerms } from "./workflow-terms.ts";

/** A keeper is ready in less than a second, unless Step Functions is slow. The lease is not renewed during this wait. */
const longestKeeperStartSeconds = 60;
/**
 * The shortest lease of an acquisition: the keeper has to start within it, however short leases are. The keeper's first
 * renewal sets the lease's own duration.
 */
const shortestStartMs = 60_000;
/** Names of a missing permission for which Step Functions has its own name. */
const denials = ["States.Permissions", "Sfn.AccessDeniedException"] as const;
const sameInput = jsonata("$states.input");

/** Returns the definition of a leased workflow. */
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
        // A redriven execution with too much data runs from its beginning. Otherwise only the tasks inside refuse, and
        // a Catch may catch that.
        Arguments: jsonata(unlessRedriven("$states.context.Execution.Input")),
        Branches: [withRefusals(terms.work)],
        Output: jsonata(unlessRedriven("$states.result[0]")),
        Next: terms.lockAtLeastForMs > 0 ? "IsEarly" : "Release",
        Catch: [catching("States.ALL", "ReleaseFailed", { Assign: failure })],
      },
      ...(terms.lockAtLeastForMs > 0
        ? {
            IsEarly: choice([rule(`${own("cooldownUntil")} > $millis()`, "Close")], "Release"),
            Close: end(requests.close),
          }
        : {}),
      Release: end(requests.release),
      Done: succeed(),
      SeeEnd: call("dynamodb:getItem", {
        ...requests.look,
        Output: sameInput,
        Next: "JudgeEnd",
        Catch: [catching("States.ALL", "LostAtEnd")],
      }),
      // A refusal may also mean that the release has landed and its answer was lost.
      JudgeEnd: choice([rule(wasLetGo(terms), "Done")], "LostAtEnd"),
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

/** The differences between a lock and a permit. */
interface Requests {
  readonly acquire: (leaseDurationMs: number) => Json;
  readonly takeOver: (leaseDurationMs: number) => Json;
  readonly release: Json;
  readonly releaseFailed: Json;
  readonly close: Json;
  /** A read of its own lease. */
  readonly look: { readonly Arguments: Json; readonly Assign: Json };
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
    states: permitStates(terms),
  };
}

function begin(terms: WorkflowTerms): State {
  const { key, waitMs, once } = terms;
  const slot = "$fromMillis($toMillis($states.input.scheduledTime))";
  const isKey = `($type(${key}) = 'string' ? $length(${key}) > 0 and $length(${key}) <= 2048 : false)`;
  // A slot that is done before its time would refuse every run until then.
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
    // The same form as the middleware's, so that both can be compared.
    ...(once ? { slot: jsonata(slot) } : {}),
  });
  return choice([rule(once ? `${isKey} and ${isTime}` : isKey, "Acquire", variables)], "Refuse");
}

/**
 * Acquires the lock. After a refusal it reads the holder; after a failure it takes back a write that may have landed.
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
 * Starts the keeper and waits until it has proven the lease and renewed it: work never begins without a working keeper.
 * Each attempt has its own token, and so its own execution. Two keepers of one lease do no harm, and a keeper that
 * comes too late finds the lease released.
 */
function startKeeper({ keeperArn }: WorkflowTerms, startMs: number): State {
  const name = `$hash(${own("token")}, 'SHA-256') & '-0-'`;
  const cause = `'the keeper of the lease did not prove and renew it in time: see its execution ' & ${name} & '0 of ${keeperArn}'`;
  const notReady = failureAs(`{'Error': 'KeeperNotReadyError', 'Cause': ${cause}}`);
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
    // The keeper's first renewal has given the lease another end. An answer that comes after it would begin the work
    // without a lease, if the keeper has died since.
    Assign: {
      [leaseVariable]: jsonata(
        `$states.result.expiresAt <= $millis() ? $error('late') : $merge([$${leaseVariable}, $states.result])`,
      ),
    },
    Next: "Work",
    Catch: [
      catching("States.Timeout", "Cancel", { Assign: notReady }),
      catching(evaluationFailed, "Cancel", { Assign: notReady }),
      catching("States.ALL", "Cancel", { Assign: failureAs(notStarted) }),
    ],
  });
}

/**
 * Ends the lease of work that succeeded. When the release is not confirmed, the keeper does it: the work's result
 * stays.
 */
function end(request: Json): State {
  const retries = assigning({ retries: jsonata("$states.context.State.RetryCount") });
  return call("dynamodb:updateItem", {
    Arguments: request,
    Output: sameInput,
    Next: "Done",
    Catch: [
      catching(refused, "SeeEnd", { Assign: retries, Output: sameInput }),
      catching("States.ALL", "Done", { Output: sameInput }),
    ],
  });
}

/**
 * JSONata: whether the look after a refused release shows that an earlier copy of it has landed. Another holder's
 * release may have overwritten its mark since.
 */
function wasLetGo(terms: WorkflowTerms): string {
  const isKnown = `${ofRecord("token", "S", terms)} = ${own("token")} or ${wasBroken(terms)}`;
  return `${wasReleased(terms)} or ${own("retries")} > 0 and $not(${isKnown})`;
}

/** A part of the failure that led here. A Fail state may lack an error or a cause. */
function told(part: "Error" | "Cause", otherwise: string): string {
  const field = `${own("failure")}.${part}`;
  return jsonata(`$exists(${field}) and ${field} != '' ? ${field} : ${literal(otherwise)}`);
}

/** JSONata for a key in the construct's props; a CDK token also resolves to text. */
export function fixedKey(key: string): string {
  if (!Token.isUnresolved(key)) return literal(key);
  return Lazy.uncachedString({
    produce(context) {
      const resolved: unknown = context.resolve(key);
      // CloudFormation inserts values that only the deployment knows between the quotes, unchanged.
      return typeof resolved === "string" ? literal(resolved) : `"${key}"`;
    },
  });
}
