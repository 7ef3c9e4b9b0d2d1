import type { Duration } from "aws-cdk-lib";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import {
  Choice,
  Condition,
  type IChainable,
  Pass,
  TaskInput,
  Wait,
  WaitTime,
} from "aws-cdk-lib/aws-stepfunctions";
import { LambdaInvoke } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { Construct } from "constructs";

/**
 * How many chunks one execution transfers. A chunk makes 9 events, and 3 more for each retry of Lambda. Even with 5
 * retries for every chunk, a history stays below the 25,000 events at which Step Functions ends it.
 */
export const chunksPerExecution = 1_000;

/** The parts of a loop. */
export interface TransferLoopProps {
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
export class TransferLoop extends Construct {
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
