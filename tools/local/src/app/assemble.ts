// Starts the parts of an app in order. Each part says how it ends before the next one starts.

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { systemClock } from "@leasehold/client";
import { readAssembly } from "../assembly/read.ts";
import { resolveApp } from "../assembly/resolve.ts";
import type { AppSpec, RuleSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { callListener } from "../program-errors.ts";
import { Scheduler } from "../schedules/scheduler.ts";
import { EventBus } from "../services/event-bus.ts";
import { eventRules } from "../services/event-rules.ts";
import { Queues } from "../services/queues.ts";
import { ServicesServer } from "../services/server.ts";
import type { StateMachines } from "../state-machines/state-machines.ts";
import { serviceEnvironment } from "./environment.ts";
import type { LocalAppListener } from "./events.ts";
import { startFunctions } from "./functions.ts";
import { startMachines } from "./machines.ts";
import type { LocalAppOptions } from "./options.ts";
import { startPollers } from "./pollers.ts";
import { createTables } from "./tables.ts";
import { targetSender } from "./targets.ts";

/** The parts of a running app. */
export interface AppParts {
  readonly spec: AppSpec;
  /** Where the services other than DynamoDB answer. */
  readonly servicesEndpoint: string;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  readonly scheduler: Scheduler;
  readonly bus: EventBus;
  readonly queues: Queues;
}

/** Starts every part of the app, and notes one by one how it is ended. */
export async function assemble(options: LocalAppOptions, cleanups: AsyncDisposableStack): Promise<AppParts> {
  const { engine, clock = systemClock } = options;
  const { clientConfig } = engine;
  const region = clientConfig.region ?? "us-east-1";
  const tableSuffix = suffixOf(options);
  const now = (): number => clock.now();
  const publish: LocalAppListener = (event) => callListener(() => options.onEvent?.(event));

  const assembly = await readAssembly(options.assemblyDir);
  const services = await ServicesServer.start();
  cleanups.defer(() => services.close());
  const spec = resolveApp(assembly, { region, tableSuffix, queueBaseUrl: services.endpoint });

  const dynamodb = new DynamoDBClient({ ...clientConfig });
  cleanups.defer(() => dynamodb.destroy());
  const engineStreams = await createTables(spec.tables, dynamodb, tableSuffix !== "", cleanups);

  const queues = new Queues(spec.queues, now);
  const bus = new EventBus(now, (event) => publish({ type: "event", event }));
  const baseEnvironment = serviceEnvironment(engine, region, services.endpoint);
  const overrides = options.environment ?? {};
  const { asyncRetryDelayMs: retryDelayMs, streamRetryDelayMs } = options;
  const lambda = await startFunctions(
    { spec, queues, baseEnvironment, overrides, retryDelayMs, publish },
    cleanups,
  );

  const setup = { spec, clock, dynamodb, lambda, bus, publish };
  const { machines, operations } = startMachines(setup, cleanups);
  const { stepFunctions: AWSStepFunctions, eventBridge: AWSEvents } = operations;
  const targets = { AWSStepFunctions, AWSEvents };
  services.serve({ targets, lambda });

  await startPollers(
    {
      spec,
      clientConfig,
      region,
      engineStreams,
      lambda,
      queues,
      retryDelayMs: streamRetryDelayMs,
      publish,
    },
    cleanups,
  );

  const send = targetSender({ spec, lambda, machines, queues });
  const ports = {
    send,
    onError: ({ path, logicalId }: RuleSpec, error: unknown) =>
      publish({ type: "error", where: path ?? logicalId, error }),
  };
  // Ended before the state machines: the events of their own end start nothing.
  cleanups.defer(bus.subscribe(eventRules(spec.rules, ports)));
  const scheduler = new Scheduler({
    clock,
    send: async (arn, input) => send(arn, input),
    onEvent: (schedule) => publish({ type: "schedule", schedule }),
  });
  cleanups.defer(() => scheduler.stop());
  for (const schedule of spec.schedules) scheduler.add(schedule);
  if (options.schedules !== false) scheduler.start();
  return { spec, servicesEndpoint: services.endpoint, lambda, machines, scheduler, bus, queues };
}

/** An endpoint that this process did not start may have tables of the same names already, and keeps what is left there. */
function suffixOf({ tableSuffix, engine }: LocalAppOptions): string {
  if (tableSuffix !== undefined) return tableSuffix;
  return engine.name === "endpoint" ? `-local-${crypto.randomUUID().slice(0, 8)}` : "";
}
