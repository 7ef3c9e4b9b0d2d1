import { Duration } from "aws-cdk-lib";
import type { IRole } from "aws-cdk-lib/aws-iam";
import {
  type EncryptionConfiguration,
  Fail,
  type IChainable,
  IntegrationPattern,
  Parallel,
  QueryLanguage,
  StateGraph,
  type StateMachine,
  TaskInput,
} from "aws-cdk-lib/aws-stepfunctions";
import {
  StepFunctionsStartExecution,
  type StepFunctionsStartExecutionProps,
} from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import {
  aDuration,
  aFlag,
  aHeartbeat,
  aNumber,
  aTable,
  aText,
  aWakeup,
  checkProps,
  checkWholeNumber,
  having,
  type Kinds,
  oneOf,
  picked,
} from "../prop-kinds.ts";
import { checkLeaseKey } from "../table/leading-keys.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { checkRegion, isSameTable } from "../table/table-place.ts";
import { type Json, jsonata } from "./asl.ts";
import { leftOpen } from "./definition-asset.ts";
import { aYear, checkedMs } from "./durations.ts";
import { type ILeaseHeartbeat, LeaseHeartbeat } from "./lease-heartbeat.ts";
import type { ILeaseWakeup } from "./lease-wakeup.ts";
import { leasedName, markLeased } from "./machine-names.ts";
import { mostWorkflowPermits } from "./permit-seats.ts";
import { RedriveGuard } from "./redrive-guard.ts";
import { checkNames } from "./reserved-names.ts";
import { roleForUse } from "./role-in-stack.ts";
import {
  mayReadOutput,
  type ObservabilityProps,
  observabilityKinds,
  observabilityOf,
  stateMachineOf,
} from "./state-machine.ts";
import { fixedKey, workflowDefinition } from "./workflow-definition.ts";
import type { WhenHeld, WorkflowTerms } from "./workflow-terms.ts";

/** Properties of {@link LeasedWorkflow}. */
export interface LeasedWorkflowProps extends ObservabilityProps {
  readonly table: ILeaseTable;
  /**
   * The states that run under the lease: any chain, in JSONata or JSONPath. They see the execution's own input, and the
   * lease as the variable `$lease`, a handle for `client.adopt`. A distributed map sees no variables, and gets the
   * lease by its `itemSelector`. Their output has at most 256 KiB less 2 bytes.
   *
   * No name of a state begins with `Leasehold_`, no variable with `leasehold_`, and no state assigns `$lease`.
   */
  readonly work: IChainable;
  /** The lock's key. @default - the field `key` of each execution's input */
  readonly key?: string;
  /**
   * At most this many executions run at once; 1 to 500. The executions and the clients that use
   * `new Semaphore(client, key, { permits })` of `@leasehold/client/semaphore` share one semaphore: each takes 1
   * permit, and judges by its own number of permits. A semaphore does not exclude the lock of the same key.
   *
   * Not with `once`, because a semaphore has no slots; only with `whenHeld` `fail` or `skip`.
   * @default - the lock: one execution at a time
   */
  readonly permits?: number;
  /**
   * How long the lock stays held after its keeper has died; the keeper renews every third of it. At least 3 seconds.
   * @default Duration.minutes(3)
   */
  readonly leaseDuration?: Duration;
  /**
   * The lock is held for at least this time: a release before it leaves the lock in its cooldown. Work that fails, or
   * is stopped, frees the lock at once.
   * @default Duration.millis(0)
   */
  readonly lockAtLeastFor?: Duration;
  /**
   * What an execution does while another holder has the lock: `fail` with LeaseUnavailableError, `skip` and succeed
   * with `{ skipped: true, key, reason }`, `wait` for the release, or `replace`: ask the holder to stop, then wait.
   * @default "fail"
   */
  readonly whenHeld?: WhenHeld;
  /** The longest wait. @default Duration.hours(1) */
  readonly waitFor?: Duration;
  /** Wakes waiting executions; needed to wait. @default - none */
  readonly wakeup?: ILeaseWakeup;
  /**
   * Whether a scheduled time runs once: the input's `scheduledTime` is the slot, and a done slot is skipped.
   * @default false
   */
  readonly once?: boolean;
  /**
   * How long an execution may take in all, including its wait; whole seconds. An execution that takes longer is
   * stopped, and its keeper releases the lock. Work that its tasks have started may run on.
   * @default - no limit but Step Functions' own of a year
   */
  readonly timeout?: Duration;
  /** How far clocks may differ; as the client's `clockSkewMs`. @default Duration.seconds(1) */
  readonly clockSkew?: Duration;
  /** As the client's `retentionMs`. @default Duration.days(7) */
  readonly retention?: Duration;
  /**
   * The state machine's name, 1 to 80 characters, unique in the account and region. Another name makes another state
   * machine, and the executions of the earlier one end. A workflow with its own name adds statements to the roles of
   * the keepers and of the redrive guard; others share theirs.
   *
   * @default - a unique name, with the same prefix as all leased workflows of the stack
   */
  readonly stateMachineName?: string;
  /**
   * The role of the state machine: `states.amazonaws.com` must be trusted to assume it. All permissions are added to
   * it, in this stack. An immutable role (`withoutPolicyUpdates()`, `mutable: false`) has to have them already; nothing
   * can check that at synth.
   *
   * @default - a role of its own
   */
  readonly role?: IRole;
  /**
   * A key of KMS for the definition and the data of executions. The role is permitted to use it; an imported key has to
   * permit the role by its own policy. Keepers need no permission: they read and write nothing that it encrypts.
   *
   * EventBridge's events of encrypted executions have no input. So give the workflow a `key`: without it, the lock of a
   * stopped execution is released at its keeper's next look, and not at once.
   *
   * @default - a key that AWS owns
   */
  readonly encryptionConfiguration?: EncryptionConfiguration;
  /**
   * The heartbeat that renews the lease. One heartbeat can serve many workflows of its table.
   *
   * @default - the stack's heartbeat for this table, see {@link LeaseHeartbeat.of}; it may keep every lock of the table
   */
  readonly heartbeat?: ILeaseHeartbeat;
}

const kinds: Kinds<LeasedWorkflowProps> = {
  ...observabilityKinds,
  table: aTable,
  work: having("a state or a chain of states", "startState", "endStates"),
  key: aText,
  permits: aNumber,
  leaseDuration: aDuration,
  lockAtLeastFor: aDuration,
  whenHeld: oneOf("fail", "skip", "wait", "replace"),
  waitFor: aDuration,
  wakeup: aWakeup,
  once: aFlag,
  timeout: aDuration,
  clockSkew: aDuration,
  retention: aDuration,
  stateMachineName: aText,
  role: having("a role", "roleArn", "grantPrincipal"),
  encryptionConfiguration: having("an EncryptionConfiguration of aws-stepfunctions", "type"),
  heartbeat: aHeartbeat,
};

/**
 * A Step Functions workflow that runs under a lease, for as long as it takes.
 *
 * It acquires the lock by a direct DynamoDB integration with the client's own expressions, starts a keeper that renews
 * the lease, runs the work, and releases. The work begins only when the keeper has proven the lease and renewed it.
 * When the work fails, its error is the execution's, after the release. When the execution is stopped, times out or
 * dies, EventBridge's event releases the lock. If the event is lost, the keeper releases the lock at its next look, at
 * every fifth beat. When the lease is lost, the keeper stops the execution.
 *
 * Costs 2 writes and 6 state transitions besides the work, and the keeper's start (1 write, 10 transitions) and
 * beats. A wait costs no polling. The execution parks, and the release wakes the execution that has waited longest. A
 * parked execution also tries again by itself when the holder's lease is over, then after longer and longer times up
 * to 5 minutes. Parked executions are served in the order of arrival, but a new caller can be quicker than the woken
 * one.
 *
 * With `permits` at most that many executions run at once, on the item of a Semaphore. A refused execution reads the
 * holders of permits. It removes expired leases as a client does, by the service's clock, as many as it needs. An
 * execution fails with SemaphoreTooLargeError if the semaphore's leases exceed the 256 KiB that Step Functions reads,
 * as the leases of clients with large payloads (`data`) can.
 *
 * Do not redrive it: the lease has ended, so start a new execution. In a redriven execution every task in JSONata fails
 * before it is sent, and EventBridge's event stops the execution. Tasks in JSONPath, and iterations of distributed
 * maps, run until its event has arrived, which takes about a second, or longer when it is late. Fence their writes, or
 * write them in JSONata.
 *
 * Fails at synth when names of the work collide with its own.
 *
 * The execution acquires the lock for at least a minute, so that the keeper can start. The keeper's first renewal sets
 * the lease's own duration.
 *
 * Ends with InvalidOptionsError without a key, LeaseUnavailableError, LeaseLostError, or the work's own error; and, if
 * no work was done, with KeeperNotPermittedError (a permission is missing), KeeperNotReadyError (its keeper did not
 * answer in time) or LeaseNotProvenError (its keeper could not read the lease).
 *
 * ```ts
 * const importing = new LeasedWorkflow(this, "Import", { table, key: "orders", work: fetchOrders.next(storeOrders) });
 * ```
 */
export class LeasedWorkflow extends Construct {
  readonly stateMachine: StateMachine;
  readonly heartbeat: ILeaseHeartbeat;
  /** Stops executions that were redriven; one for all workflows of the stack. Put an alarm on its failures. */
  readonly redriveGuard: RedriveGuard;
  /** The lock's key; undefined if each execution's input has it. */
  readonly lockKey: string | undefined;

  constructor(scope: Construct, id: string, props: LeasedWorkflowProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "table", "work");
    const { table, key, wakeup, whenHeld = "fail", once = false } = given;
    if (key !== undefined) checkLeaseKey("key", key);
    const waits = whenHeld === "wait" || whenHeld === "replace";
    if (waits && wakeup === undefined) {
      throw new Error(
        `whenHeld is ${whenHeld}, and nothing would wake the waiters: give a LeaseWakeup of the table as wakeup`,
      );
    }
    if (!waits && (wakeup !== undefined || given.waitFor !== undefined)) {
      throw new Error(
        `whenHeld is ${whenHeld}, which never waits: leave out wakeup and waitFor, or say wait`,
      );
    }
    checkRegion(this, table);
    checkSameTable("wakeup", wakeup, table);
    checkSameTable("heartbeat", given.heartbeat, table);

    const shortest = Duration.seconds(3);
    const none = Duration.millis(0);
    const leaseDurationMs = checkedMs(
      "leaseDuration",
      given.leaseDuration ?? Duration.minutes(3),
      shortest,
      aYear,
    );
    const lease = Duration.millis(leaseDurationMs);
    const terms = {
      tableName: table.nameFor(this),
      key: key === undefined ? "$states.input.key" : leftOpen(fixedKey(key)),
      leaseDurationMs,
      clockSkewMs: checkedMs("clockSkew", given.clockSkew ?? Duration.seconds(1), none, lease),
      retentionMs: checkedMs("retention", given.retention ?? Duration.days(7), Duration.hours(1), aYear),
      lockAtLeastForMs: checkedMs("lockAtLeastFor", given.lockAtLeastFor ?? none, none, lease),
      waitMs: checkedMs("waitFor", given.waitFor ?? Duration.hours(1), Duration.seconds(1), aYear),
      whenHeld,
      once,
      permits: given.permits,
    };
    checkPermits(terms);
    this.lockKey = key;
    const observability = observabilityOf(given);
    const scopeOfKeys = key === undefined ? {} : { keys: [key] };
    this.heartbeat =
      given.heartbeat ?? LeaseHeartbeat.of(this, { table, ...picked(given, "retention"), ...observability });

    const work = new StateGraph(given.work.startState, `the work of ${this.node.path}`);
    const keeperArn = this.heartbeat.stateMachine.stateMachineArn;
    // The work's own states may use either language; each of our states declares JSONata.
    const branch = work.toGraphJson(QueryLanguage.JSON_PATH) as Json;
    checkNames(this.node.path, branch);
    const definition = {
      ...workflowDefinition({ ...terms, keeperArn, work: branch }),
      ...(given.timeout === undefined ? {} : { TimeoutSeconds: timeoutSeconds(given.timeout) }),
    };
    const { stateMachineName, role } = given;
    this.stateMachine = stateMachineOf(this, definition, {
      ...observability,
      stateMachineName: stateMachineName ?? leasedName(this),
      hasWideWork: work.policyStatements.some(({ resources }) => resources.includes("*")),
      ...(role === undefined ? {} : { role: roleForUse(this, "Role", role) }),
      ...picked(given, "encryptionConfiguration"),
    });
    markLeased(this.stateMachine, stateMachineName);
    work.bind(this.stateMachine);
    for (const statement of work.policyStatements) this.stateMachine.addToRolePolicy(statement);

    table.grants.useLeases(this.stateMachine, scopeOfKeys);
    this.heartbeat.grantStart(this.stateMachine);
    this.heartbeat.guard(this.stateMachine, {
      releasesItself: true,
      ...picked(given, "key"),
      ...(given.permits === undefined ? {} : { permits: true }),
    });
    wakeup?.serve(this.stateMachine);
    this.redriveGuard = RedriveGuard.of(this.stateMachine);
  }

  /**
   * Returns a state for another state machine, in which this workflow is the part that runs under the lock.
   *
   * It runs this workflow as a child execution and waits for its end. The state's input is the child's input, and the
   * child's output is the state's output. It fails with this workflow's error and cause, for example
   * LeaseUnavailableError or the work's own error, so that `addCatch` and `addRetry` can name them. It fails with
   * States.TaskFailed if there is no such error: the child was stopped, has timed out or could not be started.
   *
   * When the outer execution is stopped, times out, or leaves this state otherwise, Step Functions stops the child, and
   * its lock is released. Each try is a separate execution, with its own lease.
   *
   * Costs 3 state transitions, besides the child's own. The state machine that has the state gets the permission to
   * start this workflow and to stop it, and to decrypt its output where the workflow has a key of KMS.
   *
   * ```ts
   * const part = importing.asState(this, "Import").addRetry({ errors: ["LeaseUnavailableError"] });
   * const whole = fetchOrders.next(part).next(storeOrders);
   * ```
   *
   * @param scope the construct in which the states are made
   * @param id the state's name, to which the two states inside it add `_Run` and `_Failed`; at most 73 characters
   */
  asState(scope: Construct, id: string): Parallel {
    return stateOf(scope, id, this.stateMachine);
  }
}

function checkPermits(terms: Omit<WorkflowTerms, "keeperArn" | "work">): void {
  const { permits, whenHeld, once, leaseDurationMs, retentionMs } = terms;
  if (permits === undefined) return;
  checkWholeNumber("permits", permits, 1, mostWorkflowPermits);
  if (once)
    throw new Error("once is set beside permits, and a semaphore has no slots: leave one of them out");
  if (whenHeld !== "fail" && whenHeld !== "skip") {
    throw new Error(
      `whenHeld is ${whenHeld} beside permits, and nothing tells executions of a permit that is free again: say fail or skip, ` +
        "and start the execution again later",
    );
  }
  // Each lease sets the ttl of the semaphore's item, and that ttl has to outlast the other leases.
  if (leaseDurationMs <= 0.75 * retentionMs) return;
  const most = Duration.millis(Math.floor(0.75 * retentionMs)).toHumanString();
  throw new Error(
    `leaseDuration is ${Duration.millis(leaseDurationMs).toHumanString()} beside permits: choose at most ${most}, three quarters of the retention`,
  );
}

function timeoutSeconds(timeout: Duration): number {
  return Math.ceil(checkedMs("timeout", timeout, Duration.seconds(1), aYear) / 1000);
}

function checkSameTable(
  prop: string,
  part: { readonly table: ILeaseTable } | undefined,
  table: ILeaseTable,
): void {
  if (part === undefined || isSameTable(part.table, table)) return;
  throw new Error(`${prop} is of the table ${part.table.node.path}: give one of ${table.node.path}`);
}

/**
 * A state that runs a state machine to its end, as a child execution, and fails with the child's own error:
 *
 *     id:  id_Run ─▶ the state's end
 *             └─ it fails ─▶ id_Failed
 *
 * A Parallel, so that callers can catch and retry the error by its name. It has no variables, because they could
 * collide with the caller's.
 */
function stateOf(scope: Construct, id: string, stateMachine: StateMachine): Parallel {
  const run = new ChildExecution(scope, `${id}_Run`, {
    stateMachine,
    queryLanguage: QueryLanguage.JSONATA,
    integrationPattern: IntegrationPattern.RUN_JOB,
    input: TaskInput.fromText(jsonata("$states.input")),
    outputs: jsonata("$states.result.Output"),
  });
  const failed = Fail.jsonata(scope, `${id}_Failed`, {
    error: ofChild("Error", "$states.input.Error"),
    cause: ofChild("Cause", "$exists($states.input.Cause) ? $states.input.Cause : 'no cause was given'"),
  });
  const state = Parallel.jsonata(scope, id, { outputs: jsonata("$states.result[0]") });
  return state.branch(run.addCatch(failed));
}

interface ChildProps extends StepFunctionsStartExecutionProps {
  readonly stateMachine: StateMachine;
}

/** The library's task; it also permits its state machine to read the output of an encrypted child. */
class ChildExecution extends StepFunctionsStartExecution {
  readonly #child: StateMachine;

  constructor(scope: Construct, id: string, props: ChildProps) {
    super(scope, id, props);
    this.#child = props.stateMachine;
  }

  protected override whenBoundToGraph(graph: StateGraph): void {
    super.whenBoundToGraph(graph);
    for (const statement of mayReadOutput(this.#child)) graph.registerPolicyStatement(statement);
  }
}

/**
 * A part of the child's own failure. The cause of `States.TaskFailed` is the child's description as JSON, unless it was
 * cut off: a cause has at most 32,768 characters.
 */
function ofChild(part: "Error" | "Cause", otherwise: string): string {
  const cause = "$states.input.Cause";
  const isWhole = `$states.input.Error = 'States.TaskFailed' and $substring(${cause}, 0, 1) = '{' and $substring(${cause}, -1) = '}'`;
  return jsonata(
    `($child := ${isWhole} ? $parse(${cause}) : {}; $exists($child.${part}) ? $child.${part} : ${otherwise})`,
  );
}
