// Defines the template's functions in a LambdaRuntime. No process runs until a function is invoked.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "@leasehold/engine";
import type { FunctionSpec } from "../assembly/types.ts";
import { LambdaRuntime } from "../lambda/runtime.ts";
import type { LocalAppListener, Metric } from "./options.ts";

/** What the functions are started with. */
interface FunctionsSetup {
  readonly functions: readonly FunctionSpec[];
  /** Variables for every function; a function's own win. */
  readonly baseEnvironment: Readonly<Record<string, string>>;
  /** Variables that win over the functions' own. */
  readonly overrides: Readonly<Record<string, string>>;
  readonly retryDelayMs: number;
  readonly publish: LocalAppListener;
}

/** Starts the runtime and defines every function of the template. No process runs until a function is invoked. */
export async function startFunctions(
  { functions, baseEnvironment, overrides, retryDelayMs, publish }: FunctionsSetup,
  cleanups: AsyncDisposableStack,
): Promise<LambdaRuntime> {
  const lambda = await LambdaRuntime.start({
    onLog(log) {
      const metrics = parseEmbeddedMetrics(log.line);
      if (metrics === undefined) publish({ type: "log", log });
      for (const metric of metrics ?? []) publish({ type: "metric", functionName: log.functionName, metric });
    },
    onEvent: (environment) => publish({ type: "environment", environment }),
    baseEnvironment,
  });
  cleanups.defer(() => lambda.close());
  for (const { inlineCode, ...fn } of functions) {
    lambda.define({
      ...fn,
      codeDir: fn.codeDir ?? (await inlineDirectory(inlineCode ?? "", cleanups)),
      environment: { ...fn.environment, ...overrides },
      retryDelayMs,
    });
  }
  return lambda;
}

/** Writes a function's inline code to a directory of its own, as Lambda does. */
async function inlineDirectory(code: string, cleanups: AsyncDisposableStack): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-inline-"));
  cleanups.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "index.js"), code);
  return directory;
}

/**
 * The variables that lead a function's SDK clients to the engine and to this app's services.
 *
 * Next to a local engine every other service's requests come here as well, where they are refused by name: an app
 * that runs here touches nothing outside.
 */
export function serviceEnvironment(
  { endpoint, clientConfig }: Engine,
  region: string,
  servicesEndpoint: string,
): Record<string, string> {
  const { credentials } = clientConfig;
  // An endpoint that somebody has named takes the credentials that the SDK finds in this process.
  const own = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith("AWS_") && value !== undefined ? [[name, value] as const] : [],
  );
  return {
    ...(credentials === undefined
      ? Object.fromEntries(own)
      : { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey }),
    AWS_REGION: region,
    AWS_ENDPOINT_URL_SFN: servicesEndpoint,
    AWS_ENDPOINT_URL_EVENTBRIDGE: servicesEndpoint,
    AWS_ENDPOINT_URL_LAMBDA: servicesEndpoint,
    ...(endpoint === undefined
      ? {}
      : {
          AWS_ENDPOINT_URL: servicesEndpoint,
          AWS_ENDPOINT_URL_DYNAMODB: endpoint,
          AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpoint,
        }),
  };
}

/** A line of embedded metrics, as the functions of this repository write it. */
interface EmbeddedMetrics {
  readonly _aws: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string }[];
    }[];
  };
  readonly [member: string]: unknown;
}

/** Reads a log line of embedded metrics; undefined for any other line. */
function parseEmbeddedMetrics(line: string): Metric[] | undefined {
  if (!line.startsWith("{") || !line.includes('"CloudWatchMetrics"')) return undefined;
  const members = JSON.parse(line) as EmbeddedMetrics;
  return members._aws.CloudWatchMetrics.flatMap(({ Namespace: namespace, Dimensions, Metrics }) => {
    const dimensions = Object.fromEntries(Dimensions.flat().map((name) => [name, String(members[name])]));
    return Metrics.map(({ Name: name }) => ({ namespace, name, value: Number(members[name]), dimensions }));
  });
}
