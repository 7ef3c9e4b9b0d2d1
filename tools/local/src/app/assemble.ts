// Starts the parts of an app in order. Each part says how it ends before the next one starts.

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { systemClock } from "@leasehold/client";
import { readAssembly } from "../assembly/read.ts";
import { functionNameOf, resolveApp } from "../assembly/resolve.ts";
import type { AppSpec, StreamMappingSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import { callListener } from "../program-errors.ts";
import { EventBus, eventRules } from "../services/event-bus.ts";
import { createIntegrations, type Integration } from "../services/integrations.ts";
import { eventBridgeOperations, stepFunctionsOperations } from "../services/operations.ts";
import { ServicesServer } from "../services/server.ts";
import { statusEvent } from "../state-machines/events.ts";
import { StateMachines } from "../state-machines/state-machines.ts";
import { failureMessage } from "../streams/delivery.ts";
import { StreamPoller } from "../streams/poller.ts";
import { serviceEnvironment, startFunctions } from "./functions.ts";
import type { LocalAppListener, LocalAppOptions, QueueMessage } from "./options.ts";
import { createTables } from "./tables.ts";

/** The messages of each queue, by its ARN, the oldest first. Nothing takes them out. */
type Queues = ReadonlyMap<string, QueueMessage[]>;

/** The parts of a running app. */
export interface AppParts {
  readonly spec: AppSpec;
  /** Where the services other than DynamoDB answer. */
  readonly servicesEndpoint: string;
  readonly lambda: LambdaRuntime;
  readonly machines: StateMachines;
  /** Hands the input of a schedule or a rule to its target; throws what refuses it. */
  readonly send: (targetArn: string, input: string) => void;
  readonly bus: EventBus;
  readonly queues: Queues;
}

/** Starts every part of the app, and notes one by one how it is ended. */
export async function assemble(options: LocalAppOptions, cleanups: AsyncDisposableStack): Promise<AppParts> {
  const { engine, asyncRetryDelayMs = 60_000 } = options;
  const { clientConfig } = engine;
  const region = clientConfig.region ?? "us-east-1";
  const tableSuffix = suffixOf(options);
  const publish: LocalAppListener = (event) => callListener(() => options.onEvent?.(event));

  const spec = resolveApp(await readAssembly(options.assemblyDir), { region, tableSuffix });
  const services = await ServicesServer.start();
  cleanups.defer(() => services.close());
  const servicesEndpoint = services.endpoint;

  const dynamodb = new DynamoDBClient({ ...clientConfig });
  cleanups.defer(() => dynamodb.destroy());
  const engineStreams = await createTables(spec.tables, dynamodb, tableSuffix !== "", cleanups);

  const queues: Queues = new Map(spec.queues.map(({ arn }) => [arn, []]));
  const bus = new EventBus(Date.now);
  const lambda = await startFunctions(
    {
      functions: spec.functions,
      baseEnvironment: serviceEnvironment(engine, region, servicesEndpoint),
      overrides: options.environment ?? {},
      retryDelayMs: asyncRetryDelayMs,
      publish,
    },
    cleanups,
  );
  const machines = startMachines({ spec, dynamodb, lambda, bus, services, publish }, cleanups);
  await startPollers({ spec, options, region, engineStreams, lambda, queues, publish }, cleanups);

  const send = targetSender(spec, lambda, machines);
  const passOn = eventRules(spec.rules, {
    send,
    onError: ({ path, logicalId }, error) => publish({ type: "error", where: path ?? logicalId, error }),
  });
  // Ended before the state machines: the events of their own end start nothing.
  cleanups.defer(bus.subscribe(passOn));
  return { spec, servicesEndpoint, lambda, machines, send, bus, queues };
}

/** An endpoint that this process did not start may have tables of the same names already, and keeps what is left there. */
function suffixOf({ tableSuffix, engine }: LocalAppOptions): string {
  if (tableSuffix !== undefined) return tableSuffix;
  return engine.name === "endpoint" ? `-local-${crypto.randomUUID().slice(0, 8)}` : "";
}

/** What the state machines call, and where they report. */
interface MachinesSetup {
  readonly spec: AppSpec;
  readonly dynamodb: DynamoDBClient;
  readonly lambda: LambdaRuntime;
  readonly bus: EventBus;
  readonly services: ServicesServer;
  readonly publish: LocalAppListener;
}

/**
 * Defines every state machine of the template, and connects them with the services that their tasks call, and with the
 * event bus. Rejects with InvalidDefinitionError for what cannot be run here.
 */
function startMachines(setup: MachinesSetup, cleanups: AsyncDisposableStack): StateMachines {
  const { spec, dynamodb, lambda, bus, services, publish } = setup;
  const machines: StateMachines = new StateMachines({
    clock: systemClock,
    onEvent(execution) {
      publish({ type: "execution", execution });
      if (execution.type !== "started" && execution.type !== "finished") return;
      bus.publish(statusEvent(machines.describe(execution.executionArn)));
    },
    call: (resource, args, { signal }) => perform(resource, args, signal),
  });
  cleanups.defer(() => machines.close());
  const stepFunctions = stepFunctionsOperations(machines);
  const eventBridge = eventBridgeOperations(bus);
  // Tasks start executions themselves, so each needs the other.
  const perform: Integration = createIntegrations({ dynamodb, lambda, machines, stepFunctions });
  for (const { arn, name, definition } of spec.stateMachines) machines.define({ arn, name, definition });
  services.serve({ targets: { AWSStepFunctions: stepFunctions, AWSEvents: eventBridge }, lambda });
  return machines;
}

/** What the streams are read with. */
interface PollersSetup {
  readonly spec: AppSpec;
  readonly options: LocalAppOptions;
  readonly region: string;
  /** The engine's stream ARNs by table name. */
  readonly engineStreams: ReadonlyMap<string, string>;
  readonly lambda: LambdaRuntime;
  readonly queues: Queues;
  readonly publish: LocalAppListener;
}

/** Begins to feed functions from the tables' streams; resolves when no write can be missed any more. */
async function startPollers(setup: PollersSetup, cleanups: AsyncDisposableStack): Promise<void> {
  const mappings = setup.spec.streamMappings.filter(({ enabled }) => enabled);
  if (mappings.length === 0) return;
  const client = new DynamoDBStreamsClient({ ...setup.options.engine.clientConfig });
  cleanups.defer(() => client.destroy());
  for (const mapping of mappings) {
    const poller = pollerFor(mapping, client, setup);
    cleanups.defer(() => poller.stop());
    await poller.start();
  }
}

function pollerFor(
  mapping: StreamMappingSpec,
  client: DynamoDBStreamsClient,
  { spec, options, region, engineStreams, lambda, queues, publish }: PollersSetup,
): StreamPoller {
  const { tableName, functionName, streamArn, onFailureArn = "" } = mapping;
  const engineStreamArn = engineStreams.get(tableName);
  if (engineStreamArn === undefined) throw new Error(`the engine gave the table ${tableName} no stream`);
  return new StreamPoller({
    mapping,
    client,
    engineStreamArn,
    region,
    invoke: (event, signal) => lambda.invoke(functionName, event, { signal }),
    onFailure(batch) {
      const functionArn = spec.functions.find(({ name }) => name === functionName)?.arn ?? functionName;
      const origin = { functionArn, streamArn, shardId: batch.shardId };
      queues.get(onFailureArn)?.push({ body: JSON.stringify(failureMessage(batch, origin, Date.now())) });
    },
    onError: (error) => publish({ type: "error", where: `the stream of ${tableName}`, error }),
    retryDelayMs: options.streamRetryDelayMs ?? 1000,
  });
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
