// Defines the template's functions in a LambdaRuntime. No process runs until a function is invoked.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { functionNameOf } from "../assembly/resolve.ts";
import type { AppSpec, FunctionSpec } from "../assembly/types.ts";
import { LambdaRuntime } from "../lambda/runtime.ts";
import type { Queues } from "../services/queues.ts";
import { Destinations } from "./destinations.ts";
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
  readonly now: () => number;
  readonly publish: LocalAppListener;
}

/** The functions of an app, ready to be invoked. */
export interface AppFunctions {
  readonly lambda: LambdaRuntime;
  readonly destinations: Destinations;
}

/** Starts the runtime and defines every function of the template. No process runs until a function is invoked. */
export async function startFunctions(
  setup: FunctionsSetup,
  cleanups: AsyncDisposableStack,
): Promise<AppFunctions> {
  const { spec, queues, now, publish } = setup;
  const lambda = await LambdaRuntime.start({
    onLog(log) {
      const metrics = parseEmbeddedMetrics(log.line);
      if (metrics === undefined) publish({ type: "log", log });
      for (const metric of metrics ?? []) publish({ type: "metric", functionName: log.functionName, metric });
    },
    onEvent: (environment) => publish({ type: "environment", environment }),
    baseEnvironment: setup.baseEnvironment,
  });
  cleanups.defer(() => lambda.close());
  const destinations = new Destinations({
    queues,
    now,
    onMessage: (target, message) => publish({ type: "message", target, message }),
    invokeAsync(functionArn, payload) {
      const name = functionNameOf(functionArn);
      const target = spec.functions.find((fn) => fn.name === name);
      if (target !== undefined) lambda.invokeAsync(name, payload);
      return target !== undefined;
    },
  });
  for (const fn of spec.functions) {
    const environment = { ...fn.environment, ...setup.overrides };
    await define({ ...fn, environment }, setup.retryDelayMs, lambda, destinations, cleanups);
  }
  return { lambda, destinations };
}

async function define(
  fn: FunctionSpec,
  retryDelayMs: number | undefined,
  lambda: LambdaRuntime,
  destinations: Destinations,
  cleanups: AsyncDisposableStack,
): Promise<void> {
  const { name, arn, handler, environment, timeoutMs, memoryMb, retries } = fn;
  const { maxEventAgeMs, reservedConcurrency } = fn;
  lambda.define({
    name,
    arn,
    codeDir: fn.codeDir ?? (await inlineDirectory(fn.inlineCode ?? "", cleanups)),
    handler,
    environment,
    timeoutMs,
    memoryMb,
    retries,
    ...(reservedConcurrency === undefined ? {} : { reservedConcurrency }),
    ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
    ...(maxEventAgeMs === undefined ? {} : { maxEventAgeMs }),
    onAsyncFailure: (record) => destinations.eventFailed(fn, record),
  });
}

/** Writes a function's inline code to a directory of its own, as Lambda does. */
async function inlineDirectory(code: string, cleanups: AsyncDisposableStack): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-inline-"));
  cleanups.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "index.js"), code);
  return directory;
}
