import { Duration, Names, Stack } from "aws-cdk-lib";
import { EventField, Rule, RuleTargetInput } from "aws-cdk-lib/aws-events";
import { SfnStateMachine } from "aws-cdk-lib/aws-events-targets";
import { Effect, type Grant, type IGrantable, Policy, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IStateMachine, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
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
import { checkRegion } from "../table/table-place.ts";
import { aYear, checkedMs } from "./durations.ts";
import { endedDefinition } from "./ended-definition.ts";
import { keeperDefinition } from "./keeper-definition.ts";
import { type ObservabilityProps, observabilityKinds } from "./observability.ts";
import { executionsOf, stateMachineOf } from "./state-machine.ts";

/** Properties of {@link LeaseHeartbeat}. */
export interface LeaseHeartbeatProps extends ObservabilityProps {
  readonly table: ILeaseTable;
  /** The locks that it may keep. @default - every lock of the table */
  readonly scope?: LeaseKeyScope;
  /**
   * For how long ttl keeps a lock that is not used any more; as the client's `retentionMs`. @default Duration.days(7)
   */
  readonly retention?: Duration;
  /**
   * Whether it is about to be removed: the keepers that run go on, and nothing may start another one, which is checked
   * at synthesis. Remove it in a later deployment, when none of its executions runs any more.
   * @default false
   */
  readonly draining?: boolean;
}

/** How {@link LeaseHeartbeat.guard} learns of an execution's end. */
export interface GuardOptions {
  /** The lock's key, where all executions use the same one. @default - the field `key` of each execution's input */
  readonly key?: string;
  /**
   * Whether an execution has let its lock go before it succeeds, as a LeasedWorkflow has: then its success is not looked
   * at, which saves 3 state transitions and 1 read each time.
   * @default false
   */
  readonly releasesItself?: boolean;
}

const kinds: Kinds<LeaseHeartbeatProps> = {
  ...observabilityKinds,
  table: aTable,
  scope: having("an object of keys and keyPrefixes"),
  retention: aDuration,
  draining: aFlag,
};
/** How executions end that do not succeed. */
const failures: readonly string[] = ["FAILED", "TIMED_OUT", "ABORTED"];
/** A keeper tells whoever waits for it that it has begun, or why it has not. */
const answering: string[] = ["states:SendTaskSuccess", "states:SendTaskFailure"];
const guardKinds: Kinds<GuardOptions> = { key: aText, releasesItself: aFlag };

/**
 * Keeps leases alive for holders that have no thread of their own: a workflow, a container task, a person.
 *
 * A state machine; one execution for each lease. Its input is `{ lease, guarded }`, where `lease` is what
 * `lease.toJSON()` gives and `guarded` the ARN of the execution that the lease protects, or `{ lease, until }` with a
 * time in epoch milliseconds. It renews every third of the lease's duration: 2.4 state transitions and 1 write, and a
 * look at the guarded execution at every fifth beat; 3 transitions and 1 write for `until`.
 *
 * - Guards an execution only if the lease names it as its owner: acquire with the owner `workflow:` and the execution's
 *   ARN. Otherwise it fails with LeaseNotProvenError, and touches nothing.
 * - Fails with KeeperNotPermittedError, before its first renewal, where it may not look at the execution or stop it.
 * - Answers `taskToken`, if the input has one, when it has proven the lease and renewed it: start it by
 *   `startExecution.waitForTaskToken`, and let the work begin then. The answer has the lease's `version` and `expiresAt`
 *   as they are now. Where it fails before, it answers with its error.
 * - Ends when the lease was released, and releases it when the guarded execution ended without doing so: at once, if
 *   EventBridge tells, and within five beats and the next look otherwise.
 * - Stops the guarded execution, with the error LeaseLostError, when the lease was lost or its holder was asked to stop,
 *   and repeats that until it has ended. A lease that it still has is renewed until then. Fails itself with
 *   LeaseLostError after a loss, and with WorkNotStoppedError when it could not stop the execution for hours.
 * - Is replaced where it is aborted, or fails by an error of Step Functions: EventBridge tells, and a new keeper starts
 *   while the lease is the execution's. Otherwise, or after 20 new ones in a row, the execution is stopped. A keeper
 *   `until` a time is not replaced. Costs nothing at rest.
 * - Hands over to a fresh execution long before Step Functions' limit of 25,000 events; where that never succeeds, it
 *   stops the work and releases.
 *
 * Not promised: that work stops with its execution. A function that a stopped execution has called runs on; fence its
 * writes. Leases have to last at least 3 seconds, since Step Functions waits in whole seconds.
 *
 * Its removal takes away the permissions of the keepers that run. Set `draining` and deploy, wait until none of its
 * executions runs, and remove it then.
 *
 * ```ts
 * const heartbeat = new LeaseHeartbeat(this, "Heartbeat", { table });
 * heartbeat.guard(imports);
 * heartbeat.grantStart(worker);
 * ```
 */
export class LeaseHeartbeat extends Construct {
  /** The keepers. Put an alarm on failed, timed-out and aborted executions: their work may have lost its lease. */
  readonly stateMachine: StateMachine;
  /**
   * Lets go of leases whose execution has ended, and replaces keepers that were ended. A failure means that a keeper will
   * let go, some beats later, or that a keeper has no successor.
   */
  readonly ended: StateMachine;
  readonly table: ILeaseTable;
  readonly #guarding: Policy;
  readonly #ends: Construct;
  readonly #isDraining: boolean;

  constructor(scope: Construct, id: string, props: LeaseHeartbeatProps) {
    super(scope, id);
    const given = checkProps(props, kinds, "table");
    const { table, retention = Duration.days(7), draining = false } = given;
    checkRegion(this, table);
    this.table = table;
    this.#isDraining = draining;
    const retentionMs = checkedMs("retention", retention, Duration.hours(1), aYear);
    const terms = { tableName: table.nameFor(this), retentionMs };
    this.stateMachine = stateMachineOf(this, keeperDefinition(terms), given);
    this.#ends = new Construct(this, "Ended");
    const keeperArn = this.stateMachine.stateMachineArn;
    this.ended = stateMachineOf(this.#ends, endedDefinition({ ...terms, keeperArn }), given);
    for (const machine of [this.stateMachine, this.ended]) table.grants.keepLeases(machine, given.scope);
    this.ended.addToRolePolicy(
      new PolicyStatement({ actions: ["states:StartExecution"], resources: [keeperArn] }),
    );
    this.#hearOf("Keeper", this.stateMachine, failures, "Has a keeper replaced that was ended.");
    // A policy of its own: the state machine must not have to wait for a policy that names the state machine.
    this.#guarding = new Policy(this, "Guarding", {
      roles: [this.stateMachine.role],
      statements: [
        new PolicyStatement({
          effect: Effect.ALLOW,
          // To hand over to a fresh execution, which answers.
          actions: ["states:StartExecution", ...answering],
          resources: [keeperArn],
        }),
        // To answer what has it take another keeper's place.
        new PolicyStatement({
          effect: Effect.ALLOW,
          actions: answering,
          resources: [this.ended.stateMachineArn],
        }),
      ],
    });
  }

  /**
   * Lets it look at, stop and answer the executions of a state machine, and tells it when one of them has ended.
   *
   * A second call for the same state machine changes nothing.
   */
  guard(guarded: IStateMachine, options: GuardOptions = {}): void {
    checkKind("guarded", guarded, aStateMachine);
    const { key, releasesItself = false } = checkProps(options, guardKinds);
    const id = Names.uniqueResourceName(guarded, { maxLength: 100 });
    if (this.#ends.node.tryFindChild(id) !== undefined) return;
    if (key !== undefined) checkLeaseKey("key", key);
    const executions = executionsOf(guarded, Stack.of(this));
    const lookAndStop = {
      effect: Effect.ALLOW,
      actions: ["states:DescribeExecution", "states:StopExecution"],
      resources: [executions],
    };
    this.#guarding.addStatements(
      new PolicyStatement(lookAndStop),
      new PolicyStatement({
        effect: Effect.ALLOW,
        actions: answering,
        resources: [guarded.stateMachineArn],
      }),
    );
    this.ended.addToRolePolicy(new PolicyStatement(lookAndStop));
    this.#hearOf(
      id,
      guarded,
      releasesItself ? failures : [...failures, "SUCCEEDED"],
      `Lets go of what executions of ${guarded.node.path} held when they ended.`,
      key,
    );
  }

  /** Passes the events of ended executions on. */
  #hearOf(id: string, of: IStateMachine, status: readonly string[], description: string, key?: string): void {
    new Rule(this.#ends, id, {
      description,
      eventPattern: {
        source: ["aws.states"],
        detailType: ["Step Functions Execution Status Change"],
        detail: { stateMachineArn: [of.stateMachineArn], status: [...status] },
      },
      targets: [
        new SfnStateMachine(this.ended, {
          ...(key === undefined ? {} : { input: endOf(key) }),
          // The keeper has looked by then; a queue of old events would be of no use.
          maxEventAge: Duration.hours(1),
          retryAttempts: 10,
        }),
      ],
    });
  }

  /**
   * Lets somebody start it.
   *
   * @throws Error for one that is `draining`
   */
  grantStart(grantee: IGrantable): Grant {
    if (this.#isDraining) {
      throw new Error(
        `${this.node.path} is draining, so that it can be removed: nothing may start a keeper of it; use another heartbeat`,
      );
    }
    checkKind("grantee", grantee, aGrantee);
    return this.stateMachine.grants.startExecution(grantee);
  }
}

/** The parts of an event that are passed on, where the key is known: not the execution's own data. */
function endOf(key: string): RuleTargetInput {
  const [executionArn, status] = ["executionArn", "status"].map((name) =>
    EventField.fromPath(`$.detail.${name}`),
  );
  return RuleTargetInput.fromObject({ key, detail: { executionArn, status } });
}
