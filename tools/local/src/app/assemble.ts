// Starts the parts of an app in order. Each part says how it ends before the next one starts.

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { systemClock } from "@leasehold/client";
import { readAssembly } from "../assembly/read.ts";
import { functionNameOf, resolveApp } from "../assembly/resolve.ts";
import type { AppSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { callListener } from "../program-errors.ts";
import { type BusEvent, eventRules } from "../services/event-bus.ts";
import { createIntegrations, type Integration } from "../services/integrations.ts";
import { eventBridgeOperations, stepFunctionsOperations } from "../services/operations.ts";
import { type Services, startServices } from "../services/server.ts";
import { statusEvent } from "../state-machines/events.ts";
import { StateMachines } from "../state-machines/state-machines.ts";
import { failureMessage } from "../streams/delivery.ts";
import { StreamPoller } from "../streams/poller.ts";
import { serviceEnvironment, startFunctions } from "./functions.ts";
import type { LocalAppListener, LocalAppOptions, QueueMessage } from "./options.ts";
import { createTables } from "./tables.ts";

/** The parts of a running app. */
export interface AppParts {
  readonly spec: AppSpec;
  /** Where the services other than DynamoDB answer. */
  readonly servicesEndpoint: string;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  /** Hands the input of a schedule or a rule to its target; throws what refuses it. */
  readonly send: (targetArn: string, input: string) => void;
  /** What was put on a bus, the oldest first. */
  readonly events: readonly BusEvent[];
  /** The messages of each queue, by its ARN, the oldest first. Nothing takes them out. */
  readonly queues: ReadonlyMap<string, QueueMessage[]>;
}

/**
 * Starts every part of the app, and notes one by one how it is ended. Rejects with InvalidDefinitionError for a state
 * machine that cannot be run here.
 */
export async function assemble(options: LocalAppOptions, cleanups: AsyncDisposableStack): Promise<AppParts> {
  const { engine, asyncRetryDelayMs: retryDelayMs = 60_000, environment: overrides = {} } = options;
  const { clientConfig } = engine;
  const region = clientConfig.region ?? "us-east-1";
  const tableSuffix = suffixOf(options);
  const publish: LocalAppListener = (event) => callListener(() => options.onEvent?.(event));
  const events: BusEvent[] = [];

  const spec = resolveApp(readAssembly(options.assemblyDir), { region, tableSuffix });
  const queues = new Map(spec.queues.map(({ arn }) => [arn, [] as QueueMessage[]]));
  // Nothing asks before there is a function, which finds all of them.
  let services: Services | undefined;
  const server = await startServices(() => services as Services);
  cleanups.defer(() => server.close());

  const dynamodb = cleanups.adopt(new DynamoDBClient({ ...clientConfig }), (client) => client.destroy());
  const engineStreams = await createTables(spec.tables, dynamodb, tableSuffix !== "", cleanups);
  const baseEnvironment = serviceEnvironment(engine, region, server.endpoint);
  const { functions } = spec;
  const lambda = await startFunctions(
    { functions, baseEnvironment, overrides, retryDelayMs, publish },
    cleanups,
  );

  let isEnding = false;
  const machines: StateMachines = new StateMachines({
    clock: systemClock,
    onEvent(execution) {
      publish({ type: "execution", execution });
      if (isEnding || (execution.type !== "started" && execution.type !== "finished")) return;
      passOn(statusEvent(machines.describe(execution.executionArn)));
    },
    call: (resource, args, { signal }) => perform(resource, args, signal),
  });
  cleanups.defer(() => machines.close());
  // The events of their own end start nothing.
  cleanups.defer(() => {
    isEnding = true;
  });
  const send = targetSender(spec, lambda, machines);
  const passOn = eventRules(spec.rules, {
    send,
    onError: ({ path, logicalId }, error) => publish({ type: "error", where: path ?? logicalId, error }),
  });
  const stepFunctions = stepFunctionsOperations(machines);
  // Tasks start executions themselves, so each needs the other.
  const perform: Integration = createIntegrations({ dynamodb, lambda, machines, stepFunctions });
  for (const machine of spec.stateMachines) machines.define(machine);
  services = {
    targets: { AWSStepFunctions: stepFunctions, AWSEvents: eventBridgeOperations(events) },
    lambda,
  };

  const parts = { spec, servicesEndpoint: server.endpoint, lambda, machines, send, events, queues };
  await startPollers(parts, { options, region, engineStreams, publish }, cleanups);
  return parts;
}

/** An endpoint that this process did not start may have tables of the same names already, and keeps what is left there. */
function suffixOf({ tableSuffix, engine }: LocalAppOptions): string {
  if (tableSuffix !== undefined) return tableSuffix;
  return engine.name === "endpoint" ? `-local-${crypto.randomUUID().slice(0, 8)}` : "";
}

/** What the streams are read with. */
interface PollersSetup {
  readonly options: LocalAppOptions;
  readonly region: string;
  /** The engine's stream ARNs by table name. */
  readonly engineStreams: ReadonlyMap<string, string>;
  readonly publish: LocalAppListener;
}

/** Begins to feed functions from the tables' streams; resolves when no write can be missed any more. */
async function startPollers(
  { spec, lambda, queues }: AppParts,
  { options, region, engineStreams, publish }: PollersSetup,
  cleanups: AsyncDisposableStack,
): Promise<void> {
  const streams = new DynamoDBStreamsClient({ ...options.engine.clientConfig });
  const client = cleanups.adopt(streams, (one) => one.destroy());
  for (const mapping of spec.streamMappings.filter(({ enabled }) => enabled)) {
    const { tableName, functionName, streamArn, onFailureArn = "" } = mapping;
    const engineStreamArn = engineStreams.get(tableName);
    if (engineStreamArn === undefined) throw new Error(`the engine gave the table ${tableName} no stream`);
    const poller = new StreamPoller({
      ...{ mapping, client, engineStreamArn, region },
      invoke: (event, signal) => lambda.invoke(functionName, event, { signal }),
      onFailure(batch) {
        const functionArn = spec.functions.find(({ name }) => name === functionName)?.arn ?? functionName;
        const origin = { functionArn, streamArn, shardId: batch.shardId };
        queues.get(onFailureArn)?.push({ body: JSON.stringify(failureMessage(batch, origin)) });
      },
      onError: (error) => publish({ type: "error", where: `the stream of ${tableName}`, error }),
      retryDelayMs: options.streamRetryDelayMs ?? 1000,
    });
    cleanups.defer(() => poller.stop());
    await poller.start();
  }
}

/** Gives the function that hands the input of a schedule or a rule to its target; it throws what refuses it. */
function targetSender(
  { functions, stateMachines }: AppSpec,
  lambda: LambdaRuntime,
  machines: StateMachines,
): (arn: string, input: string) => void {
  return (arn, text) => {
    const input: unknown = JSON.parse(text);
    if (stateMachines.some((machine) => machine.arn === arn)) {
      machines.start({ stateMachineArn: arn, input });
    } else if (functions.some(({ name }) => arn.includes(":lambda:") && name === functionNameOf(arn))) {
      lambda.invokeAsync(functionNameOf(arn), input);
    } else {
      throw new Error(`${arn} is no function and no state machine of this app`);
    }
  };
}
