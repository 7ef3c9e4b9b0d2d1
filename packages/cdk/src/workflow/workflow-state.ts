import {
  Fail,
  IntegrationPattern,
  type IStateMachine,
  Parallel,
  TaskInput,
} from "aws-cdk-lib/aws-stepfunctions";
import { StepFunctionsStartExecution } from "aws-cdk-lib/aws-stepfunctions-tasks";
import type { Construct } from "constructs";
import { jsonata } from "./asl.ts";

/**
 * A state that runs a state machine to its end, as a child execution, and fails with the child's own error:
 *
 *     id:  id_Run ─▶ the state's end
 *             └─ it fails ─▶ id_Failed
 *
 * A Parallel, so that callers can catch and retry the error by its name. It has no variables, because they could
 * collide with the caller's.
 */
export function stateOf(scope: Construct, id: string, stateMachine: IStateMachine): Parallel {
  const run = StepFunctionsStartExecution.jsonata(scope, `${id}_Run`, {
    stateMachine,
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
