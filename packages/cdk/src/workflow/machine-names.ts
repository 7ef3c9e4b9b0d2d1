/**
 * The names of leased workflows. All names of a stack have one prefix, so that one policy statement and one rule serve
 * all of them, however many there are. A workflow with a user's name has its own statements and its own rule.
 */
import { createHash } from "node:crypto";
import { ArnFormat, Names, Stack, Token } from "aws-cdk-lib";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";

/** Why a permission may be as wide as these names. */
export const ofLeasedWorkflows =
  "Leased workflows of this stack and their executions: known by how their names begin, one statement serves all.";

/** Step Functions' own limit. */
const longestName = 80;

/** The name of each leased workflow in a policy, by state machine: the common prefix, or the user's own name. */
const namesInPolicy = new WeakMap<IStateMachine, string>();

/** Names the state machine of a leased workflow; stable, and unique in the account and region. */
export function leasedName(scope: Construct): string {
  const prefix = leasedPrefix(Stack.of(scope));
  const maxLength = longestName - prefix.length;
  return (
    prefix + Names.uniqueResourceName(scope, { maxLength, separator: "-", allowedSpecialCharacters: "-" })
  );
}

/** Remembers that a state machine is a leased workflow, named by {@link leasedName} or by the user. */
export function markLeased(stateMachine: IStateMachine, ownName?: string): void {
  namesInPolicy.set(stateMachine, ownName ?? `${leasedPrefix(Stack.of(stateMachine))}*`);
}

/** The common prefix of the ARNs of a stack's leased workflows. */
export function leasedArnPrefix(stack: Stack): string {
  return machinesNamed(leasedPrefix(stack), stack);
}

/** A stack's leased workflows, in a policy. */
export function leasedMachines(stack: Stack): string {
  return `${leasedArnPrefix(stack)}*`;
}

/** The ARN of a state machine in a policy; for a leased workflow, that of all leased workflows of its stack. */
export function machineInPolicy(stateMachine: IStateMachine, seenFrom: Stack): string {
  const name = namesInPolicy.get(stateMachine);
  return name === undefined ? stateMachine.stateMachineArn : machinesNamed(name, seenFrom);
}

/** The executions of a state machine in a policy; for a leased workflow, those of all leased workflows of its stack. */
export function executionsInPolicy(stateMachine: IStateMachine, seenFrom: Stack): string {
  const name = namesInPolicy.get(stateMachine);
  if (name !== undefined) return executionsNamed(name, seenFrom);
  const { resourceName } = seenFrom.splitArn(stateMachine.stateMachineArn, ArnFormat.COLON_RESOURCE_NAME);
  return executionsNamed(String(resourceName), seenFrom);
}

/** The executions of a stack's leased workflows, in a policy. */
export function leasedExecutions(stack: Stack): string {
  return executionsNamed(`${leasedPrefix(stack)}*`, stack);
}

/** Whether a state machine was named by {@link leasedName}. */
export function isLeased(stateMachine: IStateMachine): boolean {
  return namesInPolicy.get(stateMachine)?.endsWith("*") ?? false;
}

/** The hash ends the prefix, so that no stack's prefix is the beginning of another's. */
function leasedPrefix(stack: Stack): string {
  const names = stack.node.scopes.map((scope) =>
    Stack.isStack(scope) && !Token.isUnresolved(scope.stackName) ? scope.stackName : scope.node.id,
  );
  return `leased-${createHash("sha256").update(names.join("/")).digest("hex").slice(0, 10)}-`;
}

function machinesNamed(resourceName: string, stack: Stack): string {
  const arnFormat = ArnFormat.COLON_RESOURCE_NAME;
  return stack.formatArn({ service: "states", resource: "stateMachine", resourceName, arnFormat });
}

function executionsNamed(name: string, stack: Stack): string {
  const arnFormat = ArnFormat.COLON_RESOURCE_NAME;
  return stack.formatArn({ service: "states", resource: "execution", resourceName: `${name}:*`, arnFormat });
}
