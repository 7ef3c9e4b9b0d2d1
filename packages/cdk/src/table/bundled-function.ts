import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Duration, RemovalPolicy, Stage } from "aws-cdk-lib";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  Function as LambdaFunction,
  Runtime,
  RuntimeFamily,
} from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";

/** A function that comes with the package. */
export interface BundledFunctionTerms {
  readonly description: string;
  /** Its folder among the assembly's files. */
  readonly folder: string;
  /** Its code, in CommonJS, without the AWS SDK. */
  readonly code: string;
}

/** Creates a function from a bundle of this package, with its own log and role. */
export function bundledFunction(
  scope: Construct,
  { description, folder, code }: BundledFunctionTerms,
): LambdaFunction {
  const logGroup = new LogGroup(scope, "HandlerLogs", {
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  // The library's default role has a managed policy, which may write every log of the account.
  const role = new Role(scope, "HandlerRole", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
  logGroup.grantWrite(role);
  // Among the assembly's files, because the package's own files may be bundled away; the asset's hash is that of the
  // content.
  const path = join(Stage.of(scope)?.assetOutdir ?? "cdk.out", folder);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "index.cjs"), code);
  return new LambdaFunction(scope, "Handler", {
    description,
    code: Code.fromAsset(path),
    handler: "index.handler",
    // Older versions of the library have no constant for it.
    runtime: new Runtime("nodejs24.x", RuntimeFamily.NODEJS),
    architecture: Architecture.ARM_64,
    memorySize: 256,
    timeout: Duration.seconds(30),
    logGroup,
    role,
  });
}
