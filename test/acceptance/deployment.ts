import { CloudFormationClient, DescribeStacksCommand, type Stack } from "@aws-sdk/client-cloudformation";
import { AcceptanceProblem, problemOf } from "./problems.ts";

/** The parts of a deployment that are checked. */
export interface Deployment {
  readonly stackName: string;
  readonly region: string;
  readonly tableName: string;
  readonly functionName: string;
  readonly workflowArn: string;
  readonly heartbeatArn: string;
}

/** The stack's outputs, as infra/leasehold-stack.ts names them. */
const outputs = {
  tableName: "LeaseTableName",
  functionName: "AcceptanceFunctionName",
  workflowArn: "AcceptanceWorkflowArn",
  heartbeatArn: "HeartbeatArn",
} as const;

/**
 * Finds a deployment by what its stack tells. Sends 1 request.
 *
 * Rejects with AcceptanceProblem: NO_REGION, NO_CREDENTIALS, CREDENTIALS_EXPIRED, CREDENTIALS_REFUSED, ACCESS_DENIED,
 * UNREACHABLE, NO_SUCH_STACK, STACK_NOT_READY, OUTPUTS_MISSING.
 */
export async function findDeployment(stackName: string, signal: AbortSignal): Promise<Deployment> {
  const region = await regionOf();
  const stack = await describe(stackName, region, signal);
  const status = String(stack.StackStatus);
  if (!/^(CREATE|UPDATE|IMPORT|UPDATE_ROLLBACK)_COMPLETE/.test(status)) {
    throw new AcceptanceProblem(
      "STACK_NOT_READY",
      `The stack ${stackName} in ${region} is ${status}: wait for the deployment to end, or deploy again.`,
    );
  }
  const given = new Map(stack.Outputs?.map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]));
  const missing = Object.values(outputs).filter((name) => !given.get(name));
  if (missing.length > 0) {
    const has = [...given.keys()].join(", ") || "none";
    throw new AcceptanceProblem(
      "OUTPUTS_MISSING",
      `The stack ${stackName} in ${region} has no output ${missing.join(", ")}; it has ${has}. It is another stack, ` +
        "or it was deployed by an older version: deploy this one.",
    );
  }
  const output = (name: keyof typeof outputs): string => String(given.get(outputs[name]));
  return {
    stackName,
    region,
    tableName: output("tableName"),
    functionName: output("functionName"),
    workflowArn: output("workflowArn"),
    heartbeatArn: output("heartbeatArn"),
  };
}

async function regionOf(): Promise<string> {
  const client = new CloudFormationClient({});
  try {
    return await client.config.region();
  } catch (error) {
    throw new AcceptanceProblem("NO_REGION", "No region is set: set AWS_REGION to the stack's region.", {
      cause: error,
    });
  } finally {
    client.destroy();
  }
}

async function describe(stackName: string, region: string, abortSignal: AbortSignal): Promise<Stack> {
  const client = new CloudFormationClient({});
  try {
    const answer = await client.send(new DescribeStacksCommand({ StackName: stackName }), { abortSignal });
    const [stack] = answer.Stacks ?? [];
    if (stack !== undefined) return stack;
  } catch (error) {
    abortSignal.throwIfAborted();
    // CloudFormation has no error of its own for it, but this sentence.
    const isMissing = error instanceof Error && /Stack .*does not exist/.test(error.message);
    if (!isMissing) throw problemOf(error, `reading the stack ${stackName} in ${region}`) ?? error;
  } finally {
    client.destroy();
  }
  throw new AcceptanceProblem(
    "NO_SUCH_STACK",
    `There is no stack ${stackName} in ${region}: look at --stack, AWS_REGION and the account of the credentials.`,
  );
}
