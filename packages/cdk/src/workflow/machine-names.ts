/**
 * The names of leased workflows. All of a stack begin alike, so that one statement of a policy and one rule serve them
 * all, however many there are.
 */
import { createHash } from "node:crypto";
import { ArnFormat, Names, Stack, Token } from "aws-cdk-lib";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";

/** Step Functions' own limit. */
const longestName = 80;

/** The start of the name of each leased workflow, by state machine. */
const prefixes = new WeakMap<IStateMachine, string>();

/** Names the state machine of a leased workflow; stable, and unique in the account and region. */
export function leasedName(scope: Construct): string {
  const prefix = leasedPrefix(Stack.of(scope));
  const maxLength = longestName - prefix.length;
  return (
    prefix + Names.uniqueResourceName(scope, { maxLength, separator: "-", allowedSpecialCharacters: "-" })
  );
}

/** Remembers that a state machine has a name by {@link leasedName}. */
export function markLeased(stateMachine: IStateMachine): void {
  prefixes.set(stateMachine, leasedPrefix(Stack.of(stateMachine)));
}

/** How the ARN of each leased workflow of a stack begins. */
export function leasedArnPrefix(stack: Stack): string {
  return machinesNamed(leasedPrefix(stack), stack);
}

/** A stack's leased workflows, in a policy. */
export function leasedMachines(stack: Stack): string {
  return `${leasedArnPrefix(stack)}*`;
}

/** The ARN of a state machine in a policy; of a leased workflow that of all leased workflows of its stack. */
export function machineInPolicy(stateMachine: IStateMachine, seenFrom: Stack): string {
  const prefix = prefixes.get(stateMachine);
  return prefix === undefined ? stateMachine.stateMachineArn : machinesNamed(`${prefix}*`, seenFrom);
}

/** The executions of a state machine in a policy; of a leased workflow those of all leased workflows of its stack. */
export function executionsInPolicy(stateMachine: IStateMachine, seenFrom: Stack): string {
  const prefix = prefixes.get(stateMachine);
  if (prefix !== undefined) return executionsNamed(`${prefix}*`, seenFrom);
  const { resourceName } = seenFrom.splitArn(stateMachine.stateMachineArn, ArnFormat.COLON_RESOURCE_NAME);
  return executionsNamed(String(resourceName), seenFrom);
}

/** The executions of a stack's leased workflows, in a policy. */
export function leasedExecutions(stack: Stack): string {
  return executionsNamed(`${leasedPrefix(stack)}*`, stack);
}

/** Whether a state machine has a name by {@link leasedName}. */
export function isLeased(stateMachine: IStateMachine): boolean {
  return prefixes.has(stateMachine);
}

/** The hash ends the prefix, so that no stack's prefix begins with another's. */
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
