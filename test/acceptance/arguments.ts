import { parseArgs } from "node:util";
import { AcceptanceProblem } from "./problems.ts";

/** What is to be checked. */
export type Subject =
  /** A stack on AWS. */
  | { readonly stackName: string }
  /** This repository's app, on this machine. */
  | { readonly stackName: undefined };

export const usage = `npm run evidence -- acceptance                    checks the app of this repository on this machine
DYNAMODB_ENDPOINT=aws npm run evidence -- acceptance --stack Leasehold
                                                  checks a stack on AWS, in the region and with the credentials
                                                  that the SDK finds (AWS_REGION, AWS_PROFILE)`;

/** Reads the command line. Throws AcceptanceProblem with code USAGE. */
export function readArguments(args: readonly string[], env: NodeJS.ProcessEnv): Subject {
  const stackName = stackIn(args);
  const isAws = env.DYNAMODB_ENDPOINT === "aws";
  if (isAws && stackName === undefined) throw misused("DYNAMODB_ENDPOINT is aws, and no stack is named");
  if (!isAws && stackName !== undefined) {
    throw misused(`a stack is on AWS, and DYNAMODB_ENDPOINT is ${env.DYNAMODB_ENDPOINT ?? "not set"}`);
  }
  return { stackName };
}

function stackIn(args: readonly string[]): string | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: { stack: { type: "string" } } });
    if (values.stack === "") throw new Error("--stack is empty");
    return values.stack;
  } catch (error) {
    throw misused((error as Error).message);
  }
}

function misused(what: string): AcceptanceProblem {
  return new AcceptanceProblem("USAGE", `${what}.\n\n${usage}`);
}
