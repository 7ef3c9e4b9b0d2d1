// The variables of a function's process: the template's and Lambda's own, hardly any of this process.

import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { type CheckedFunction, defaultVariables } from "./definition.ts";

/** Of the parent's own variables a function gets these and no others: what the template forgot must be missing here. */
const inherited = ["PATH", "HOME", "TMPDIR"] as const;

/** Where CommonJS finds the AWS SDK that Lambda's runtime has: here it is the one that this package is installed with. */
const sdkFolder = createRequire(import.meta.url)
  .resolve("@aws-sdk/client-dynamodb")
  .replace(/[\\/]@aws-sdk[\\/].*$/, "");

/** Everything that a function's process has in its environment. */
export function processEnvironment(
  fn: CheckedFunction,
  base: Readonly<Record<string, string>>,
  runtimeApi: string,
  now: number,
): Record<string, string> {
  const own: Record<string, string> = {};
  for (const name of inherited) {
    const value = process.env[name];
    if (value !== undefined) own[name] = value;
  }
  const day = new Date(now).toISOString().slice(0, 10).replaceAll("-", "/");
  const [nodeMajor] = process.versions.node.split(".");
  return {
    ...own,
    ...defaultVariables,
    NODE_PATH: sdkFolder,
    ...base,
    ...fn.environment,
    _HANDLER: fn.handler,
    LAMBDA_TASK_ROOT: fn.codeDir,
    AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${nodeMajor}.x`,
    AWS_LAMBDA_RUNTIME_API: runtimeApi,
    AWS_LAMBDA_FUNCTION_NAME: fn.name,
    AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(fn.memoryMb),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${fn.name}`,
    AWS_LAMBDA_LOG_STREAM_NAME: `${day}/[$LATEST]${randomBytes(16).toString("hex")}`,
  };
}
