/** What the tests of constructs make their stacks of, and read in their templates. */
import { LeasedWorkflow, type LeasedWorkflowProps, LeaseTable } from "@leasehold/cdk";
import { App, Duration, Stack, type StackProps } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { Code, type FunctionProps, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { withStandIns } from "./cloudformation.ts";

export const env = { account: "111122223333", region: "eu-west-1" };
export const everyFiveMinutes: ScheduleExpression = ScheduleExpression.rate(Duration.minutes(5));

export function newStack(props: StackProps = { env }, app: App = new App(), id = "Test"): Stack {
  return new Stack(app, id, props);
}

/** A function that runs for a minute at most, unless the test wants another. */
export function functionIn(stack: Stack, id = "Work", props: Partial<FunctionProps> = {}): LambdaFunction {
  return new LambdaFunction(stack, id, {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline("exports.handler = async () => ({});"),
    timeout: Duration.minutes(1),
    ...props,
  });
}

/** The table "Leases" of a stack. */
export function tableIn(stack: Stack, stream = false): LeaseTable {
  const existing = stack.node.tryFindChild("Leases");
  return existing instanceof LeaseTable ? existing : new LeaseTable(stack, "Leases", { stream });
}

/** A workflow on that table, which does nothing under the lock `import`, unless the test wants another. */
export function workflowIn(
  stack: Stack,
  props: Partial<LeasedWorkflowProps> = {},
  id = "Import",
): LeasedWorkflow {
  const work = props.work ?? new Pass(stack, `${id}Work`);
  return new LeasedWorkflow(stack, id, { table: tableIn(stack), key: "import", ...props, work });
}

export interface Statement {
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The statements of the policies whose logical ids begin so. */
export function statementsIn(template: Template, id = /^/): Statement[] {
  return Object.entries(template.findResources("AWS::IAM::Policy"))
    .filter(([name]) => id.test(name))
    .flatMap(([, { Properties }]) => Properties.PolicyDocument.Statement as Statement[]);
}

export function only<T>(found: Readonly<Record<string, T>>): T {
  const [one, ...more] = Object.values(found);
  if (one === undefined || more.length > 0) throw new Error(`${more.length} more, or none`);
  return one;
}

/** The value as text, with references to resources in angle brackets. */
export function textOf(value: unknown): string {
  const text = withStandIns(value, (...names) => `<${names.join(".")}>`);
  return typeof text === "string" ? text : JSON.stringify(text);
}

/** What a statement permits, as actions, a resource and keys. */
export function permission({ Action, Resource, Condition }: Statement): string {
  const keys = Condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"];
  return `${[Action].flat().join()} ${textOf(Resource)}${keys ? ` ${JSON.stringify(keys)}` : ""}`;
}

/** What the policies whose logical ids begin so permit. */
export function permitted(template: Template, id: RegExp): string[] {
  return statementsIn(template, id).map(permission);
}
