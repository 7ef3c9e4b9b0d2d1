/** How large a stack of locked jobs becomes: its template, its resources and its policies. */
import { LeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import {
  type CloudFormationTemplate,
  referenceTo,
  resourcesOf,
  withStandIns,
} from "../../test/support/cloudformation.ts";
import { table, writeGenerated } from "./costs/markdown.ts";

/** What CloudFormation and IAM take at most. */
export const awsLimits = {
  /** Of a template that lies in S3, in bytes. */
  template: 1_048_576,
  resources: 500,
  /** Of all inline policies of a role together, in characters without white space. */
  inlinePolicies: 10_240,
} as const;

/** What a stack has in all. */
interface StackSize {
  readonly jobs: number;
  readonly resources: number;
  readonly templateBytes: number;
  /** Of the role with the most. */
  readonly policyCharacters: number;
}

/** A stack with so many jobs of locked functions, each with its alarms; with the policies as the library writes them. */
export function stackOfJobs(jobs: number, context: Record<string, unknown> = {}): Stack {
  const stack = new Stack(new App({ context }), "Nightly");
  const leases = new LeaseTable(stack, "Leases");
  for (let number = 1; number <= jobs; number += 1) {
    const report = new LambdaFunction(stack, `Report${number}`, {
      runtime: Runtime.NODEJS_24_X,
      handler: "index.handler",
      code: Code.fromInline("exports.handler = async () => {};"),
      timeout: Duration.minutes(5),
    });
    new SingletonJob(stack, `Report${number}Job`, {
      table: leases,
      schedule: ScheduleExpression.rate(Duration.hours(1)),
      target: SingletonJobTarget.lockedLambda(report),
    });
  }
  return stack;
}

/** Measures stacks of jobs as `cdk` writes their templates, with indents. For more jobs, another stack is needed. */
export function stackSizes(): readonly StackSize[] {
  return [1, 30, 36].map(sizeWith);
}

function sizeWith(jobs: number): StackSize {
  const template = Template.fromStack(stackOfJobs(jobs)).toJSON() as CloudFormationTemplate;
  return {
    jobs,
    resources: Object.keys(template.Resources).length,
    templateBytes: Buffer.byteLength(JSON.stringify(template, undefined, 1)),
    policyCharacters: Math.max(...inlinePolicies(template).values()),
  };
}

/** The characters of the inline policies of each role, once the deployment has put values in. */
export function inlinePolicies(template: CloudFormationTemplate): Map<string, number> {
  const roles = new Map<string, number>();
  for (const [, { Properties }] of resourcesOf(template, "AWS::IAM::Policy")) {
    const deployed = withStandIns(Properties.PolicyDocument, (id) => pseudo[id] ?? arn);
    const characters = JSON.stringify(deployed).length;
    for (const role of Properties.Roles as readonly unknown[]) {
      const id = String(referenceTo(role));
      roles.set(id, (roles.get(id) ?? 0) + characters);
    }
  }
  return roles;
}

/** In the place of what only a deployment knows: as long as it is at most, or a little longer. */
const pseudo: Readonly<Record<string, string>> = {
  "AWS::Partition": "aws-us-gov",
  "AWS::Region": "ap-southeast-2",
  "AWS::AccountId": "123456789012",
};
const arn = `arn:aws-us-gov:states:ap-southeast-2:123456789012:stateMachine:${"x".repeat(64)}`;

/** Writes the table of stacks in docs/limits.md anew: `npm run bench -- stack-size`. */
export async function writeStackSizes(): Promise<void> {
  await writeGenerated("limits.md", stackSizeReport(), "npm run bench -- stack-size");
}

/** The table of docs/limits.md. */
export function stackSizeReport(sizes = stackSizes()): string {
  const rows = sizes.map(({ jobs, resources, templateBytes, policyCharacters }) => {
    const thousands = Math.ceil(templateBytes / 1_000) * 1_000;
    return [jobs, resources, thousands, policyCharacters].map((figure) => figure.toLocaleString("en-US"));
  });
  const most = [awsLimits.resources, awsLimits.template, awsLimits.inlinePolicies].map((limit) =>
    limit.toLocaleString("en-US"),
  );
  return table([
    ["jobs", "resources", "template, bytes", "inline policies of a role, characters"],
    ...rows,
    ["**AWS takes**", ...most],
  ]);
}
