// Fills in the defaults of a function's definition.

import type { FunctionDefinition } from "./types.ts";

/** A definition whose every default is filled in. */
export type CheckedFunction = Required<Omit<FunctionDefinition, "reservedConcurrency" | "onAsyncFailure">> &
  Pick<FunctionDefinition, "reservedConcurrency" | "onAsyncFailure">;

/** Variables that the base environment and the function's own may replace. */
export const defaultVariables: Readonly<Record<string, string>> = {
  TZ: "UTC",
  AWS_REGION: "us-east-1",
  // DynamoDB Local allows only letters and digits in a key.
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
};

/** Fills the defaults in. The template has been checked by the CDK. */
export function withDefaults(
  definition: FunctionDefinition,
  baseEnvironment: Readonly<Record<string, string>>,
): CheckedFunction {
  const { name, environment = {} } = definition;
  const region = environment.AWS_REGION ?? baseEnvironment.AWS_REGION ?? defaultVariables.AWS_REGION;
  return {
    arn: `arn:aws:lambda:${region}:000000000000:function:${name}`,
    environment,
    memoryMb: 128,
    retries: 2,
    retryDelayMs: 60_000,
    ...definition,
  };
}
