// Sends the input of a schedule or a rule to its target.

import { functionNameOf } from "../assembly/resolve.ts";
import type { AppSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import type { Queues } from "../services/queues.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";

/** What a schedule or a rule may start. */
export interface TargetPorts {
  readonly spec: AppSpec;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  readonly queues: Queues;
}

/** The ARN of a schedule's or a rule's target belongs to nothing that this app has. */
export class UnknownTargetError extends Error {
  constructor(arn: string) {
    super(`${arn} is no function, state machine or queue of this app`);
    this.name = "UnknownTargetError";
  }
}

/** Gives the function that hands an input to a target; it throws what the target refuses it with. */
export function targetSender({
  spec,
  lambda,
  machines,
  queues,
}: TargetPorts): (arn: string, input: string) => void {
  const functions = new Set(spec.functions.map(({ name }) => name));
  const stateMachines = new Set(spec.stateMachines.map(({ arn }) => arn));
  return (arn, input) => {
    if (/^arn:[^:]+:lambda:/.test(arn) && functions.has(functionNameOf(arn))) {
      lambda.invokeAsync(functionNameOf(arn), parsed(input));
    } else if (stateMachines.has(arn)) {
      machines.start({ stateMachineArn: arn, input: parsed(input) });
    } else if (queues.find(arn)) {
      queues.send(arn, input);
    } else {
      throw new UnknownTargetError(arn);
    }
  };
}

/** A target's input is JSON by contract; one that is not reaches it as text. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    // Ignored: reading text as JSON throws for nothing but text that is none.
    return input;
  }
}
