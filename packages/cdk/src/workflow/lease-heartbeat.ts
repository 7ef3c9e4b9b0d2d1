import { ArnFormat, Duration, Stack } from "aws-cdk-lib";
import { Effect, type Grant, type IGrantable, Policy, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IStateMachine, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { LeaseKeyScope } from "../table/leading-keys.ts";
import type { ILeaseTable } from "../table/lease-table-base.ts";
import { checkRegion } from "../table/table-place.ts";
import { aYear, checkedMs } from "./durations.ts";
import { keeperDefinition } from "./keeper-definition.ts";
import type { ObservabilityProps } from "./observability.ts";
import { stateMachineOf } from "./state-machine.ts";

/** Properties of {@link LeaseHeartbeat}. */
export interface LeaseHeartbeatProps extends ObservabilityProps {
  readonly table: ILeaseTable;
  /** The locks that it may keep. @default - every lock of the table */
  readonly scope?: LeaseKeyScope;
  /** For how long ttl keeps a lock that nobody uses any more; as the client's `retentionMs`. @default Duration.days(7) */
  readonly retention?: Duration;
}

/**
 * Keeps leases alive for holders that have no thread of their own: a workflow, a container task, a person.
 *
 * A state machine; one execution for each lease. Its input is `{ lease, guarded }`, where `lease` is what
 * `lease.toJSON()` gives and `guarded` the ARN of the execution that the lease protects, or `{ lease, until }` with a
 * time in epoch milliseconds. Every third of the lease's duration it looks at the guarded execution and renews: 4
 * state transitions and 1 write.
 *
 * - Ends when the lease was released, and releases it when the guarded execution ended without doing so.
 * - Stops the guarded execution, with the error LeaseLostError, when the lease was lost or its holder was asked to
 *   stop, and fails itself with LeaseLostError after a loss.
 * - Hands over to a fresh execution long before Step Functions' limit of 25,000 events.
 *
 * Not promised: that work stops with its execution. A function that a stopped execution has called runs on; fence its
 * writes. Leases have to last at least 3 seconds, since Step Functions waits in whole seconds.
 *
 * ```ts
 * const heartbeat = new LeaseHeartbeat(this, "Heartbeat", { table });
 * heartbeat.guard(imports);
 * heartbeat.grantStart(worker);
 * ```
 */
export class LeaseHeartbeat extends Construct {
  readonly stateMachine: StateMachine;
  readonly table: ILeaseTable;
  readonly #guarding: Policy;

  constructor(scope: Construct, id: string, props: LeaseHeartbeatProps) {
    super(scope, id);
    const { table, retention = Duration.days(7) } = props;
    checkRegion(this, table);
    this.table = table;
    const retentionMs = checkedMs("retention", retention, Duration.hours(1), aYear);
    this.stateMachine = stateMachineOf(
      this,
      keeperDefinition({ tableName: table.nameFor(this), retentionMs }),
      props,
    );
    table.grants.useLeases(this.stateMachine, props.scope);
    // A policy of its own: the state machine must not have to wait for a policy that names the state machine.
    this.#guarding = new Policy(this, "Guarding", {
      roles: [this.stateMachine.role],
      statements: [
        new PolicyStatement({
          effect: Effect.ALLOW,
          actions: ["states:StartExecution"],
          resources: [this.stateMachine.stateMachineArn],
        }),
      ],
    });
  }

  /** Lets it look at, and stop, the executions of a state machine. */
  guard(guarded: IStateMachine): void {
    const stack = Stack.of(this);
    const arnFormat = ArnFormat.COLON_RESOURCE_NAME;
    const { resourceName } = stack.splitArn(guarded.stateMachineArn, arnFormat);
    const executions = {
      service: "states",
      resource: "execution",
      resourceName: `${resourceName}:*`,
      arnFormat,
    };
    this.#guarding.addStatements(
      new PolicyStatement({
        effect: Effect.ALLOW,
        actions: ["states:DescribeExecution", "states:StopExecution"],
        resources: [stack.formatArn(executions)],
      }),
    );
  }

  /** Lets somebody start it. */
  grantStart(grantee: IGrantable): Grant {
    return this.stateMachine.grants.startExecution(grantee);
  }
}
