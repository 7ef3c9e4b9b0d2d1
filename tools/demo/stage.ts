import { mkdtempSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import {
  EndpointUnreachableError,
  type Engine,
  EngineStartError,
  EngineUnavailableError,
  InvalidEndpointError,
  startEngine,
} from "@leasehold/engine";
import { type LocalApp, type LocalAppEvent, startApp } from "@leasehold/local";
import { Ending, exitCodes } from "./command-line.ts";
import { Gate } from "./gate.ts";
import { type LeaseChange, leaseChanges } from "./leases.ts";
import type { Screen, Step } from "./screen.ts";
import { synthesize } from "./synthesis.ts";
import type { Tempo } from "./tempo.ts";

/** What a scenario is played on. */
export interface Stage {
  readonly app: LocalApp;
  /** All that the functions say to DynamoDB goes through it. */
  readonly gate: Gate;
  /** A connection past the gate. */
  readonly documents: DynamoDBDocumentClient;
  readonly screen: Screen;
  /** The plan's times, as they are on this machine. */
  readonly tempo: Tempo;
  /** Has every event of the app told, in every system of it. */
  hear(listener: (event: LocalAppEvent) => void): void;
  /** Every write of the lease table so far, in the order in which the table made them. */
  history(): Promise<readonly LeaseChange[]>;
}

/** What a stage is set with. */
interface StageOptions {
  readonly engine: Promise<Engine>;
  readonly screen: Screen;
  readonly tempo: Tempo;
  /** Environment variables of the functions, in the place of the template's. */
  readonly settings: Readonly<Record<string, string>>;
  /** Aborts when all of it is to end. */
  readonly signal: AbortSignal;
}

/**
 * Synthesizes the app and starts it. The scenarios do what its schedules would.
 *
 * Everything that was started ends with the resources, and also what is about to start when they end.
 */
export async function setStage(resources: AsyncDisposableStack, options: StageOptions): Promise<Stage> {
  const { screen, tempo, signal } = options;
  const [engine, assemblyDir] = await Promise.all([
    options.engine,
    makeAssembly(resources, screen, tempo.stretch, signal),
  ]);
  const { endpoint, clientConfig } = engine;
  if (endpoint === undefined) throw notHere();
  const step = screen.step("Starting the app");
  const gate = await owned(resources, signal, () => Gate.open({ clientConfig: { endpoint } }));
  const environment = { ...options.settings, AWS_ENDPOINT_URL_DYNAMODB: gate.url };
  const listeners = new Set<(event: LocalAppEvent) => void>();
  const onEvent = (event: LocalAppEvent): void => {
    if (event.type === "error") screen.note(`${event.where}: ${String(event.error)}`);
    for (const listener of listeners) listener(event);
  };
  const app = await owned(resources, signal, () => startApp({ assemblyDir, engine, environment, onEvent }));
  const { tables, functions, stateMachines } = app.spec;
  step.done(`${tables.length} tables, ${functions.length} functions, ${stateMachines.length} state machines`);
  const dynamodb = resources.adopt(new DynamoDBClient(clientConfig), (client) => client.destroy());
  const streams = resources.adopt(new DynamoDBStreamsClient(clientConfig), (client) => client.destroy());
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const history = () => leaseChanges(dynamodb, streams, app.tableName("Leases/Resource"));
  return { app, gate, documents, screen, tempo, history, hear: (listener) => listeners.add(listener) };
}

/** Starts a DynamoDB, or finds the one that DYNAMODB_ENDPOINT names. Rejects with an Ending where there is none. */
export async function startDynamoDb(
  resources: AsyncDisposableStack,
  screen: Screen,
  signal: AbortSignal,
): Promise<Engine> {
  const step = screen.step("Starting DynamoDB");
  try {
    const engine = await owned(resources, signal, () => startEngine({ signal }));
    if (engine.endpoint === undefined) throw notHere();
    step.done(`${engine.version} answers`);
    return engine;
  } catch (error) {
    const explained = [
      EndpointUnreachableError,
      EngineStartError,
      EngineUnavailableError,
      InvalidEndpointError,
    ];
    if (explained.some((kind) => error instanceof kind)) {
      throw new Ending((error as Error).message, exitCodes.failed);
    }
    throw error;
  }
}

/** Resolves to the folder of the assembly, which is gone when the process is, whatever ends it but SIGKILL. */
async function makeAssembly(
  resources: AsyncDisposableStack,
  screen: Screen,
  stretch: number,
  signal: AbortSignal,
): Promise<string> {
  const step = screen.step("Synthesizing infra/app.ts");
  signal.throwIfAborted();
  // In one step: a folder that is made while the process ends would not be removed.
  const folder = mkdtempSync(join(tmpdir(), "leasehold-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.on("exit", remove);
  resources.defer(async () => {
    await rm(folder, { recursive: true, force: true });
    process.off("exit", remove);
  });
  const bundling: { step?: Step; count: number } = { count: 0 };
  const onBundling = (path: string): void => {
    bundling.step ??= screen.step("Bundling the functions");
    bundling.count += 1;
    bundling.step.tell(`${bundling.count}: ${path}`);
  };
  const synthesis = synthesize(folder, signal, { stretch, onBundling });
  // The signal has ended it by then, or is about to.
  resources.defer(() => synthesis.catch(() => undefined));
  await synthesis;
  bundling.step?.done(`${bundling.count} bundles`);
  step.done("a cloud assembly, as cdk synth makes it");
  return folder;
}

/** Starts something that ends with the resources, also if they end while it starts. */
function owned<T extends AsyncDisposable>(
  resources: AsyncDisposableStack,
  signal: AbortSignal,
  start: () => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const starting = start();
  resources.defer(async () => {
    // What did not start has nothing to end, and its error has been told.
    const started = await starting.catch(() => undefined);
    await started?.[Symbol.asyncDispose]();
  });
  return starting;
}

function notHere(): Ending {
  const text =
    "The demonstration wants a DynamoDB on this machine: unset DYNAMODB_ENDPOINT, or give it a local URL.";
  return new Ending(text, exitCodes.failed);
}
