// Defines the template's functions in a LambdaRuntime. No process runs until a function is invoked.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppSpec } from "../assembly/types.ts";
import { LambdaRuntime } from "../lambda/runtime.ts";
import type { Queues } from "../services/queues.ts";
import { parseEmbeddedMetrics } from "./embedded-metrics.ts";
import type { LocalAppListener } from "./events.ts";

/** What the functions are started with. */
export interface FunctionsSetup {
  readonly spec: AppSpec;
  readonly queues: Queues;
  /** Variables for every function; a function's own win. */
  readonly baseEnvironment: Readonly<Record<string, string>>;
  /** Variables that win over the functions' own. */
  readonly overrides: Readonly<Record<string, string>>;
  readonly retryDelayMs: number | undefined;
  readonly publish: LocalAppListener;
}

/** Starts the runtime and defines every function of the template. No process runs until a function is invoked. */
export async function startFunctions(
  { spec, queues, baseEnvironment, overrides, retryDelayMs, publish }: FunctionsSetup,
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
  for (const { inlineCode, reservedConcurrency, onFailureArn, ...fn } of spec.functions) {
    const { name, arn, handler, timeoutMs, memoryMb, retries } = fn;
    lambda.define({
      name,
      arn,
      codeDir: fn.codeDir ?? (await inlineDirectory(inlineCode ?? "", cleanups)),
      handler,
      environment: { ...fn.environment, ...overrides },
      timeoutMs,
      memoryMb,
      retries,
      ...(reservedConcurrency === undefined ? {} : { reservedConcurrency }),
      ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
      ...(onFailureArn && { onAsyncFailure: (record) => queues.send(onFailureArn, JSON.stringify(record)) }),
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
