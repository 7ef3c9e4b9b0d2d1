import { fileURLToPath } from "node:url";
import type { ILeaseTable } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { type Duration, RemovalPolicy } from "aws-cdk-lib";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, Runtime } from "aws-cdk-lib/aws-lambda";
import { NodejsFunction, OutputFormat, SourceMapMode } from "aws-cdk-lib/aws-lambda-nodejs";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";

/** Properties of {@link Handler}. */
export interface HandlerProps {
  /** The handler's file under functions/. */
  readonly entry: string;
  /** What it does, in a sentence. */
  readonly description: string;
  readonly timeout: Duration;
  /** The table of its leases. @default - none; a job tells its function */
  readonly leases?: ILeaseTable;
  readonly environment?: Record<string, string>;
}

const root = fileURLToPath(new URL("..", import.meta.url));

/** One of this repository's functions: a single small ES module, with its own log group and a role that may write there. */
export class Handler extends NodejsFunction {
  constructor(scope: Construct, id: string, props: HandlerProps) {
    const { entry, leases, environment, ...rest } = props;
    const logGroup = new LogGroup(scope, `${id}Logs`, {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(scope, `${id}Role`, { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
    logGroup.grantWrite(role);
    super(scope, id, {
      ...rest,
      environment: { ...(leases && { [environmentNames.tableName]: leases.tableName }), ...environment },
      entry: `${root}functions/${entry}`,
      projectRoot: root,
      depsLockFilePath: `${root}package-lock.json`,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      // A function's processor grows with its memory, and half of the first invocation is loading the module.
      memorySize: 512,
      logGroup,
      role,
      bundling: {
        format: OutputFormat.ESM,
        target: "node24",
        minify: true,
        sourceMap: true,
        // For people who read a stack trace: the function itself does not load it.
        sourceMapMode: SourceMapMode.EXTERNAL,
        // Saves a third of the bundle: tree shaking does not work on the SDK's CommonJS form.
        mainFields: ["module", "main"],
        // A custom condition turns off esbuild's "module", which has to be named again.
        esbuildArgs: {
          "--conditions": "leasehold-source,module",
          // Saves a fifth of the loading time.
          "--alias": `node:http=${root}infra/node-http.mjs`,
        },
        // The tested version, and half the loading time of the runtime's own copy.
        bundleAwsSDK: true,
      },
    });
  }
}
