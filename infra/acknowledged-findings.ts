import { type Stack, Validations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";

/** One finding of cdk-nag about one resource of the stack, and the reason why it is accepted. */
interface AcknowledgedFinding {
  /** The resource's path below the stack. */
  readonly path: string;
  /** The rule's id, with the finding's own id where a rule has several. */
  readonly id: string;
  readonly reason: string;
}

const deadLetterQueue =
  "It is a dead-letter queue itself, of an event source or a schedule: the rule sees those of queues and topics only.";
const unscoped =
  "The actions of X-Ray and of log delivery, which a traced and logged state machine needs, know no resource.";
const ownVersions =
  "The versions and aliases of one function, which has none: the library's LambdaInvoke always names both.";

/**
 * All accepted findings, each for a single resource: a second finding of the same kind fails the synthesis.
 *
 * A path that does not exist fails it as well.
 */
const acknowledgedFindings: readonly AcknowledgedFinding[] = [
  {
    path: "LeaseFunctions/UnreportedExpiries/Resource",
    id: "AwsSolutions-SQS3",
    reason: deadLetterQueue,
  },
  {
    path: "Imports/Workflow/StateMachine/Role/DefaultPolicy/Resource",
    id: "AwsSolutions-IAM5[Resource::<ImportsTransfer30E48021.Arn>:*]",
    reason: ownVersions,
  },
  {
    path: "Imports/Workflow/StateMachine/Role/DefaultPolicy/Resource",
    id: 'AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:{"Fn::Select":[6,{"Fn::Split":[":",{"Ref":"ImportsBatch5A811FAB"}]}]}*]',
    reason: "The executions of one state machine, which this one starts, waits for, and stops with itself.",
  },
  {
    path: "Imports/Batch/Role/DefaultPolicy/Resource",
    id: "AwsSolutions-IAM5[Resource::*]",
    reason: unscoped,
  },
  {
    path: "Imports/Batch/Role/DefaultPolicy/Resource",
    id: "AwsSolutions-IAM5[Resource::<ImportsTransfer30E48021.Arn>:*]",
    reason: ownVersions,
  },
];

/** Acknowledges the findings of this table, and no others. */
export function acknowledgeFindings(stack: Stack): void {
  for (const { path, id, reason } of acknowledgedFindings) {
    const resource = path.split("/").reduce((scope: IConstruct, name) => scope.node.findChild(name), stack);
    Validations.of(resource).acknowledge({ id: `AwsSolutions::${id}`, reason });
  }
}
