import { type ILeaseTable, LeasedWorkflow, type LeaseHeartbeat, type LeaseWakeup } from "@leasehold/cdk";
import { Duration, Names, RemovalPolicy, Stack } from "aws-cdk-lib";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import {
  Choice,
  Condition,
  DefinitionBody,
  type IChainable,
  IntegrationPattern,
  JitterType,
  LogLevel,
  Pass,
  QueryLanguage,
  StateMachine,
  Succeed,
  TaskInput,
  Wait,
  WaitTime,
} from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke, StepFunctionsStartExecution } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";
import {
  chunkParkedMessage,
  runFailedMessage,
  tableVariable,
  transferKey,
} from "../../functions/import-orders/schema.ts";
import { droppedEvents, SystemAlarm } from "../alarms.ts";
import { Handler } from "../handler.ts";
import type { Pace } from "../pace.ts";
import { SystemTable } from "../system-table.ts";

/** What imports and exports work with. */
interface ImportsProps {
  readonly leases: ILeaseTable;
  readonly heartbeat: LeaseHeartbeat;
  readonly wakeup: LeaseWakeup;
  readonly pace: Pace;
}

/**
 * Imports and exports of orders, which must not overlap: a function for work of minutes, and a workflow for work of
 * hours. They share one lock.
 */
export class Imports extends Construct {
  readonly workflow: LeasedWorkflow;

  constructor(scope: Construct, id: string, props: ImportsProps) {
    super(scope, id);
    const { leases, heartbeat, wakeup, pace } = props;
    const orders = new SystemTable(this, "Orders");
    const transfer = new Handler(this, "Transfer", {
      entry: "import-orders/handler.ts",
      description: "Imports or exports orders, one holder at a time.",
      timeout: Duration.minutes(5),
      leases,
      environment: { [tableVariable]: orders.tableName },
    });
    orders.permit(transfer, "Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem");
    leases.grants.useLeases(transfer, { keys: [transferKey] });

    const loop = { transfer, pause: pace.betweenChunks };
    const batch = this.#batch(loop);
    const done = Succeed.jsonata(this, "AllTransferred");
    this.workflow = new LeasedWorkflow(this, "Workflow", {
      table: leases,
      key: transferKey,
      work: new TransferLoop(this, "Loop", {
        ...loop,
        lease: "{% $lease %}",
        whenDone: done,
        whenFull: this.#handOn(batch, pace, done),
      }).chain,
      leaseDuration: pace.workflowLease,
      whenHeld: "wait",
      waitFor: Duration.hours(6),
      heartbeat,
      wakeup,
    });
    const { stateMachine } = this.workflow;
    new SystemAlarm(this, "Failed", {
      what: "An import or export failed, lost its lock, or parked a chunk.",
      entry: "importFailed",
      messages: [runFailedMessage, chunkParkedMessage],
      functions: { Transfer: transfer },
      metrics: {
        errors: transfer.metricErrors(),
        dropped: droppedEvents(transfer),
        failed: stateMachine.metricFailed(),
        aborted: stateMachine.metricAborted(),
        timedOut: stateMachine.metricTimedOut(),
      },
    });
  }

  /** A fresh history: transfers more chunks for a workflow that has the lock, and says whether these were all. */
  #batch(loop: Pick<TransferLoopProps, "transfer" | "pause">): StateMachine {
    const { chain } = new TransferLoop(this, "BatchLoop", {
      ...loop,
      lease: "{% $states.input.lease %}",
      whenDone: Succeed.jsonata(this, "NothingLeft", { outputs: { isDone: true } }),
      whenFull: Succeed.jsonata(this, "MoreLeft", { outputs: { isDone: false } }),
    });
    return new StateMachine(this, "Batch", {
      definitionBody: DefinitionBody.fromChainable(chain),
      queryLanguage: QueryLanguage.JSONATA,
      logs: {
        destination: new LogGroup(this, "BatchLogs", {
          // Under this prefix a log group needs no entry of its own in the account's resource policy for logs.
          logGroupName: `/aws/vendedlogs/states/${Stack.of(this).stackName}-${Names.uniqueResourceName(this, { maxLength: 40, separator: "-" })}-batch`,
          retention: RetentionDays.ONE_MONTH,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
        level: LogLevel.ALL,
        includeExecutionData: false,
      },
      tracingEnabled: true,
    });
  }

  /**
   * Hands the rest on to fresh executions, one after the other, and waits for each. The workflow itself keeps the
   * lock, and its keeper guards it all the time. So neither the lease nor its token changes hands.
   *
   * An execution is named after the lease and its number. A start that is repeated finds the execution that it has
   * started.
   */
  #handOn(batch: StateMachine, pace: Pace, done: Succeed): IChainable {
    const number = Pass.jsonata(this, "CountExecutions", { assign: { executions: 1 } });
    const handOn = StepFunctionsStartExecution.jsonata(this, "HandOn", {
      stateMachine: batch,
      integrationPattern: IntegrationPattern.RUN_JOB,
      name: "{% $hash($lease.token, 'SHA-256') & '-' & $string($executions) %}",
      input: TaskInput.fromObject({
        kind: "{% $states.context.Execution.Input.kind %}",
        lease: "{% $lease %}",
      }),
      assign: { executions: "{% $executions + 1 %}" },
      outputs: "{% $states.result.Output %}",
    });
    handOn.addRetry({
      errors: ["StepFunctions.ExecutionLimitExceededException", "StepFunctions.AWSStepFunctionsException"],
      interval: Duration.seconds(2),
      maxAttempts: 6,
      backoffRate: 2,
      jitterStrategy: JitterType.FULL,
    });
    const pause = Wait.jsonata(this, "PauseBetween", { time: WaitTime.duration(pace.betweenChunks) });
    const isDone = Choice.jsonata(this, "IsAnyChunkLeft")
      .when(Condition.jsonata("{% $states.input.isDone %}"), done)
      .otherwise(pause);
    pause.next(handOn);
    return number.next(handOn).next(isDone);
  }
}

/**
 * How many chunks one execution transfers. A chunk makes 9 events, and 3 more for each retry of Lambda. Even with 5
 * retries for every chunk, a history stays below the 25,000 events at which Step Functions ends it.
 */
export const chunksPerExecution = 1_000;

/** The parts of a loop. */
interface TransferLoopProps {
  /** The function that transfers one chunk. */
  readonly transfer: IFunction;
  /** Between two chunks. */
  readonly pause: Duration;
  /** JSONata for the lease of the transfers, at the loop's first state. */
  readonly lease: string;
  /** Where to go on when nothing is left to transfer. */
  readonly whenDone: IChainable;
  /** Where to go on when something may be left, but this execution has done its share. */
  readonly whenFull: IChainable;
}

/** States that transfer chunk after chunk, and stop before their execution's history is full. */
class TransferLoop extends Construct {
  readonly chain: IChainable;

  constructor(scope: Construct, id: string, props: TransferLoopProps) {
    super(scope, id);
    const { transfer, pause, lease, whenDone, whenFull } = props;
    const begin = Pass.jsonata(this, "CountChunks", {
      assign: { handle: lease, chunksLeft: chunksPerExecution },
    });
    const step = LambdaInvoke.jsonata(this, "TransferChunk", {
      lambdaFunction: transfer,
      payload: TaskInput.fromObject({
        kind: "{% $states.context.Execution.Input.kind %}",
        lease: "{% $handle %}",
      }),
      assign: { chunksLeft: "{% $chunksLeft - 1 %}" },
      outputs: "{% $states.result.Payload %}",
    });
    const wait = Wait.jsonata(this, "Pause", { time: WaitTime.duration(pause) });
    const isDone = Choice.jsonata(this, "IsAnythingLeft")
      .when(Condition.jsonata("{% $states.input.result = 'nothingLeft' %}"), whenDone)
      .when(Condition.jsonata("{% $chunksLeft <= 0 %}"), whenFull)
      .otherwise(wait);
    wait.next(step);
    this.chain = begin.next(step).next(isDone);
  }
}
