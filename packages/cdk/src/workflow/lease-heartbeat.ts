import { createHash } from "node:crypto";
import { Duration, Names, Stack } from "aws-cdk-lib";
import { EventField, Rule, RuleTargetInput } from "aws-cdk-lib/aws-events";
import { SfnStateMachine } from "aws-cdk-lib/aws-events-targets";
import { type Grant, type IGrantable, type IRole, Policy, PolicyStatement, Role } from "aws-cdk-lib/aws-iam";
import { type IStateMachine, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct, DependencyGroup, type IConstruct, type IDependable } from "constructs";
import { acceptResource } from "../accepted-findings.ts";
import {
  aDuration,
  aFlag,
  aGrantee,
  aStateMachine,
  aTable,
  aText,
  checkKind,
  checkProps,
  having,
  type Kinds,
} from "../prop-kinds.ts";
import { checkLeaseKey, type LeaseKeyScope } from "../table/leading-keys.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { checkRegion, checkServed } from "../table/table-place.ts";
import { aYear, checkedMs } from "./durations.ts";
import { endedDefinition } from "./ended-definition.ts";
import { keeperDefinition } from "./keeper-definition.ts";
import { executionsInPolicy, machineInPolicy } from "./machine-names.ts";
import { permitSortKey } from "./permit-seats.ts";
import { checkInlinePolicies, granteeBy, policiesIn, roleInStackOf } from "./role-in-stack.ts";
import { type ObservabilityProps, observabilityKinds, stateMachineOf } from "./state-machine.ts";

/** A heartbeat, made here or elsewhere. */
export interface ILeaseHeartbeat extends IConstruct {
  /** The table whose leases it keeps. */
  readonly table: ILeaseTable;
  /** The keepers. Put an alarm on failed, timed-out and aborted executions: their work may have lost its lease. */
  readonly stateMachine: IStateMachine;
  /**
   * Releases leases whose execution has ended, and replaces keepers that were ended. A failure means that a keeper
   * releases some beats later, or that a keeper has no successor.
   */
  readonly ended: IStateMachine;
  /**
   * Permits the heartbeat to describe, stop and answer the executions of a state machine, and informs it when one of
   * them has ended.
   *
   * A second call for the same state machine changes nothing. The permissions and the rule belong to the guarded
   * machine's stack. So that stack depends on the heartbeat's stack, and never the other way round.
   *
   * @throws Error for a state machine of another account or region
   */
  guard(guarded: IStateMachine, options?: GuardOptions): void;
  /** Permits a grantee to start it. */
  grantStart(grantee: IGrantable): Grant;
}

/** The attributes for {@link LeaseHeartbeat.fromLeaseHeartbeatAttributes}: the ARNs of a heartbeat's parts. */
export interface LeaseHeartbeatAttributes {
  /** The table whose leases it keeps. */
  readonly table: ILeaseTable;
  /** The ARN of `stateMachine`. */
  readonly stateMachineArn: string;
  /** The ARN of `role`. */
  readonly roleArn: string;
  /** The ARN of `ended`. */
  readonly endedStateMachineArn: string;
  /** The ARN of `endedRole`. */
  readonly endedRoleArn: string;
}

/** Properties of {@link LeaseHeartbeat.of}. */
export interface StackHeartbeatProps extends ObservabilityProps {
  readonly table: ILeaseTable;
  /** How long ttl keeps an unused lock; as the client's `retentionMs`. @default Duration.days(7) */
  readonly retention?: Duration;
}

/** Properties of {@link LeaseHeartbeat}. */
export interface LeaseHeartbeatProps extends StackHeartbeatProps {
  /** The locks that it may keep. @default - every lock of the table */
  readonly scope?: LeaseKeyScope;
  /**
   * Whether it is about to be removed: running keepers go on, and the synthesis refuses every construct that could
   * start another. Remove it in a later deployment, when none of its executions runs any more.
   * @default false
   */
  readonly draining?: boolean;
}

/** Options of {@link LeaseHeartbeat.guard}. */
export interface GuardOptions {
  /** The lock's key, where all executions use the same one. @default - the field `key` of each execution's input */
  readonly key?: string;
  /**
   * Whether an execution releases its lock before it succeeds, as a LeasedWorkflow does. Then its success is ignored,
   * which saves 3 state transitions and 1 read each time.
   * @default false
   */
  readonly releasesItself?: boolean;
  /**
   * Whether its leases are permits of the semaphore of that key; set it together with `key`. Without `key` both are
   * read, the lock first.
   * @default false
   */
  readonly permits?: boolean;
}

const kinds: Kinds<LeaseHeartbeatProps> = {
  ...observabilityKinds,
  table: aTable,
  scope: having("an object of keys and keyPrefixes"),
  retention: aDuration,
  draining: aFlag,
};
/** The default heartbeats of stacks. */
const stacksOwn = new WeakSet<ILeaseHeartbeat>();

/** Whether a heartbeat is its stack's default, which no user has created by name. */
export function isStacksOwn(heartbeat: ILeaseHeartbeat): boolean {
  return stacksOwn.has(heartbeat);
}

/** The keepers' permissions on a guarded state machine. */
const permissions = new WeakMap<IStateMachine, DependencyGroup>();

/**
 * The permissions that must be deployed before keepers can guard executions of a state machine; undefined if no
 * heartbeat guards it.
 */
export function permissionsToKeep(guarded: IStateMachine): IDependable | undefined {
  return permissions.get(guarded);
}

/** Why a permission may be as wide as the executions of a state machine. */
const ofGuarded =
  "State machines that the heartbeat guards, and their executions: each execution has a name that only its start knows.";

/** The statuses of executions that did not succeed. */
const failures: readonly string[] = ["FAILED", "TIMED_OUT", "ABORTED"];
/** A keeper reports to a waiting starter that it has begun, or why it has not. */
const answering: string[] = ["states:SendTaskSuccess", "states:SendTaskFailure"];
const guardKinds: Kinds<GuardOptions> = { key: aText, releasesItself: aFlag, permits: aFlag };
const attributeKinds: Kinds<LeaseHeartbeatAttributes> = {
  table: aTable,
  stateMachineArn: aText,
  roleArn: aText,
  endedStateMachineArn: aText,
  endedRoleArn: aText,
};

const attributeNames = Object.keys(attributeKinds) as readonly (keyof LeaseHeartbeatAttributes)[];

/** The methods of every heartbeat. */
abstract class LeaseHeartbeatBase extends Construct implements ILeaseHeartbeat {
  abstract readonly table: ILeaseTable;
  abstract readonly stateMachine: IStateMachine;
  abstract readonly ended: IStateMachine;
  /** The permissions that exist, by stack and executions. */
  readonly #permitted = new Map<string, readonly IDependable[]>();

  /** The keepers' role as a grantee: its permissions belong to the stack of `guarded`. */
  protected abstract keepersFor(guarded: IConstruct): IGrantable;

  /** The same for the role of `ended`. */
  protected abstract endedFor(guarded: IConstruct): IGrantable;

  guard(guarded: IStateMachine, options: GuardOptions = {}): void {
    checkKind("guarded", guarded, aStateMachine);
    const { key, releasesItself = false, permits = false } = checkProps(options, guardKinds);
    const id = `Ended${Names.nodeUniqueId(this.node)}`;
    if (guarded.node.tryFindChild(id) !== undefined) return;
    if (key !== undefined) checkLeaseKey("key", key);
    checkServed({ construct: this, env: this.stateMachine.env, does: "guard state machines" }, guarded);
    const group = permissions.get(guarded) ?? new DependencyGroup();
    permissions.set(guarded, group);
    group.add(...this.#permit(guarded));
    tellOfEnds(guarded, id, {
      description: `Lets go of what executions of ${guarded.node.path} held when they ended.`,
      ended: this.ended,
      of: guarded,
      status: releasesItself ? failures : [...failures, "SUCCEEDED"],
      ...(key === undefined ? {} : { input: endOf(key, permits) }),
    });
  }

  /** All leased workflows of a stack share one permission, so that a policy does not grow with their number. */
  #permit(guarded: IStateMachine): readonly IDependable[] {
    const stack = Stack.of(guarded);
    const executions = executionsInPolicy(guarded, stack);
    const place = `${stack.node.addr} ${executions}`;
    const existing = this.#permitted.get(place);
    if (existing !== undefined) return existing;
    const lookAndStop = ["states:DescribeExecution", "states:StopExecution"];
    const keepers = this.keepersFor(guarded);
    const written = [
      ...permit(keepers, lookAndStop, executions),
      ...permit(keepers, answering, machineInPolicy(guarded, stack)),
      ...permit(this.endedFor(guarded), lookAndStop, executions),
    ];
    this.#permitted.set(place, written);
    return written;
  }

  grantStart(grantee: IGrantable): Grant {
    checkKind("grantee", grantee, aGrantee);
    return this.stateMachine.grantStartExecution(grantee);
  }
}

/** Returns the policy that has the permission. */
function permit(grantee: IGrantable, actions: string[], resource: string): readonly IDependable[] {
  const statement = new PolicyStatement({ actions, resources: [resource] });
  const { grantPrincipal } = grantee;
  const { policyDependable } = grantPrincipal.addToPrincipalPolicy(statement);
  const written = [policyDependable, grantPrincipal].find((part) => Construct.isConstruct(part));
  if (written !== undefined) acceptResource(written, resource, ofGuarded);
  return policyDependable === undefined ? [] : [policyDependable];
}

interface Ends {
  readonly description: string;
  readonly ended: IStateMachine;
  readonly of: IStateMachine;
  readonly status: readonly string[];
  /** @default - the event */
  readonly input?: RuleTargetInput;
}

/** Passes on the events of ended executions. */
function tellOfEnds(scope: Construct, id: string, { description, ended, of, status, input }: Ends): void {
  new Rule(scope, id, {
    description,
    eventPattern: {
      source: ["aws.states"],
      detailType: ["Step Functions Execution Status Change"],
      detail: { stateMachineArn: [of.stateMachineArn], status: [...status] },
    },
    targets: [
      new SfnStateMachine(ended, {
        ...(input === undefined ? {} : { input }),
        // The keeper has looked by then, so a queue of old events would be useless.
        maxEventAge: Duration.hours(1),
        retryAttempts: 10,
      }),
    ],
  });
}

/** A heartbeat that another app has defined. */
class ImportedLeaseHeartbeat extends LeaseHeartbeatBase {
  readonly table: ILeaseTable;
  readonly stateMachine: IStateMachine;
  readonly ended: IStateMachine;
  readonly #role: IRole;
  readonly #endedRole: IRole;

  constructor(scope: Construct, id: string, attributes: LeaseHeartbeatAttributes) {
    super(scope, id);
    const given = checkProps(attributes, attributeKinds, ...attributeNames);
    checkRegion(this, given.table);
    this.table = given.table;
    const ended = new Construct(this, "Ended");
    this.stateMachine = StateMachine.fromStateMachineArn(this, "StateMachine", given.stateMachineArn);
    this.ended = StateMachine.fromStateMachineArn(ended, "StateMachine", given.endedStateMachineArn);
    this.#role = Role.fromRoleArn(this, "Role", given.roleArn);
    this.#endedRole = Role.fromRoleArn(ended, "Role", given.endedRoleArn);
  }

  protected keepersFor(guarded: IConstruct): IGrantable {
    return roleInStackOf(guarded, this.#role);
  }

  protected endedFor(guarded: IConstruct): IGrantable {
    return roleInStackOf(guarded, this.#endedRole);
  }
}

/**
 * Keeps leases alive for holders without their own thread: a workflow, a container task, a person.
 *
 * A state machine; one execution for each lease. Its input is `{ lease, guarded }`: `lease` is the result of
 * `lease.toJSON()`, and `guarded` the ARN of the execution that the lease protects. Or it is `{ lease, until }` with a
 * time in epoch milliseconds.
 * It renews every third of the lease's duration: 2.4 state transitions and 1 write, and a look at the guarded execution
 * at every fifth beat; 3 transitions and 1 write for `until`.
 *
 * - Guards an execution only if the lease names it as its owner: acquire with the owner `workflow:` and the execution's
 *   ARN. Otherwise it fails with LeaseNotProvenError, and touches nothing.
 * - Fails with KeeperNotPermittedError, before its first renewal, if it may not describe the execution or stop it.
 * - Answers `taskToken`, if the input has one, when it has proven the lease and renewed it: start it by
 *   `startExecution.waitForTaskToken`, and let the work begin then. The answer has the lease's present `version` and
 *   `expiresAt`. If it fails before, it answers with its error.
 * - Keeps a lock, or a permit of a Semaphore: `lease` is the handle of either.
 * - Ends when the lease was released. Releases it if the guarded execution has ended without a release: at once after
 *   EventBridge's event, otherwise within five beats and the next look.
 * - Stops the guarded execution, with the error LeaseLostError, when the lease was lost or its holder was asked to
 *   stop, and repeats that until it has ended. It renews a lease that it still has until then. It fails with
 *   LeaseLostError after a loss, and with WorkNotStoppedError if it could not stop the execution for hours.
 * - Is replaced if it is aborted, or fails by an error of Step Functions: after EventBridge's event a new keeper
 *   starts, while the execution holds the lease. Otherwise, or after 20 new keepers in a row, the execution is stopped.
 *   A keeper `until` a time is not replaced. Costs nothing at rest.
 * - Hands over to a fresh execution long before Step Functions' limit of 25,000 events. If that never succeeds, it
 *   stops the work and releases.
 *
 * Not promised: that work stops with its execution. A function that a stopped execution has called runs on; fence its
 * writes. Leases have to last at least 3 seconds, because Step Functions waits in whole seconds.
 *
 * Its removal removes the permissions of the running keepers. Set `draining` and deploy, wait until none of its
 * executions runs, and then remove it.
 *
 * ```ts
 * const heartbeat = new LeaseHeartbeat(this, "Heartbeat", { table });
 * heartbeat.guard(imports);
 * heartbeat.grantStart(worker);
 * ```
 */
export class LeaseHeartbeat extends LeaseHeartbeatBase {
  /** Refers to a heartbeat that another app has defined, in this account and region. */
  static fromLeaseHeartbeatAttributes(
    scope: Construct,
    id: string,
    attributes: LeaseHeartbeatAttributes,
  ): ILeaseHeartbeat {
    return new ImportedLeaseHeartbeat(scope, id, attributes);
  }

  readonly stateMachine: IStateMachine;
  readonly ended: IStateMachine;
  /** The role of `stateMachine`. */
  readonly role: IRole;
  /** The role of `ended`. */
  readonly endedRole: IRole;
  readonly table: ILeaseTable;
  readonly #guarding: Policy;
  readonly #isDraining: boolean;

  /**
   * The heartbeat of a construct's stack for a table, created at the first call: the default of every
   * {@link LeasedWorkflow} and locked job. There is one for each table, and for each `retention`, `logLevel`,
   * `logGroup`, `logRetention` and `tracing`.
   *
   * It may keep every lock of the table. To permit less, give the workflows a heartbeat with a `scope`.
   */
  static of(construct: Construct, props: StackHeartbeatProps): LeaseHeartbeat {
    const { table, retention, logLevel, logGroup, logRetention, tracing } = checkProps(props, kinds, "table");
    const stack = Stack.of(construct);
    const settings = [table.node.addr, retention?.toString(), logLevel, logGroup?.node.addr, logRetention];
    const hash = createHash("sha256")
      .update(JSON.stringify([...settings, tracing]))
      .digest("hex");
    const id = `LeaseholdHeartbeat${hash.slice(0, 8)}`;
    const existing = stack.node.tryFindChild(id);
    if (existing instanceof LeaseHeartbeat) return existing;
    const heartbeat = new LeaseHeartbeat(stack, id, props);
    stacksOwn.add(heartbeat);
    return heartbeat;
  }

  constructor(scope: Construct, id: string, props: LeaseHeartbeatProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "table");
    const { table, retention = Duration.days(7), draining = false } = given;
    checkRegion(this, table);
    this.table = table;
    this.#isDraining = draining;
    const retentionMs = checkedMs("retention", retention, Duration.hours(1), aYear);
    const terms = { tableName: table.nameFor(this), retentionMs };
    const keeper = stateMachineOf(this, keeperDefinition(terms), given);
    const keeperArn = keeper.stateMachineArn;
    const ended = stateMachineOf(
      new Construct(this, "Ended"),
      endedDefinition({ ...terms, keeperArn }),
      given,
    );
    this.stateMachine = keeper;
    this.role = keeper.role;
    this.ended = ended;
    this.endedRole = ended.role;
    for (const machine of [keeper, ended]) table.grants.keepLeases(machine, given.scope);
    ended.addToRolePolicy(
      new PolicyStatement({ actions: ["states:StartExecution"], resources: [keeperArn] }),
    );
    tellOfEnds(this, "KeeperEnded", {
      description: "Has a keeper replaced that was ended.",
      ended,
      of: keeper,
      status: failures,
    });
    // A separate policy: the state machine must not have to wait for a policy that names the state machine.
    this.#guarding = new Policy(this, "Guarding", {
      roles: [keeper.role],
      statements: [
        new PolicyStatement({
          // To hand over to a fresh execution, which answers.
          actions: ["states:StartExecution", ...answering],
          resources: [keeperArn],
        }),
        // To answer the machine that starts it in place of another keeper.
        new PolicyStatement({ actions: answering, resources: [ended.stateMachineArn] }),
      ],
    });
    checkInlinePolicies(
      this,
      () => [...policiesIn(keeper.role), this.#guarding],
      "guard some of its state machines by another heartbeat, or set the flag @aws-cdk/aws-iam:minimizePolicies",
    );
  }

  protected keepersFor(guarded: IConstruct): IGrantable {
    const { role } = this;
    return Stack.of(guarded) === Stack.of(this)
      ? granteeBy(role, () => this.#guarding)
      : roleInStackOf(guarded, role);
  }

  protected endedFor(guarded: IConstruct): IGrantable {
    return roleInStackOf(guarded, this.endedRole);
  }

  /**
   * Permits a grantee to start it.
   *
   * @throws Error for one that is `draining`
   */
  override grantStart(grantee: IGrantable): Grant {
    if (this.#isDraining) {
      throw new Error(
        `${this.node.path} is draining, so that it can be removed: nothing may start a keeper of it; use another heartbeat`,
      );
    }
    return super.grantStart(grantee);
  }
}

/** The parts of an event that are passed on if the key is known: without the execution's own data. */
function endOf(key: string, permits: boolean): RuleTargetInput {
  const [executionArn, status] = ["executionArn", "status"].map((name) =>
    EventField.fromPath(`$.detail.${name}`),
  );
  const detail = { executionArn, status };
  return RuleTargetInput.fromObject(permits ? { key, sortKey: permitSortKey, detail } : { key, detail });
}
