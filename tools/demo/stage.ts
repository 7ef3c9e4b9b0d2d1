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
import { InvalidDefinitionError, type LocalAppEvent, startApp } from "@leasehold/local";
import { definitionProblems } from "@leasehold/local/definitions";
import { Ending, exitCodes } from "./endings.ts";
import { Gate } from "./gate.ts";
import type { Stage } from "./scenario.ts";
import type { Screen } from "./screen.ts";
import { synthesize } from "./synthesis.ts";
import { leaseChanges } from "./table-stream.ts";
import type { Tempo } from "./tempo.ts";

/** What a stage is set with. */
export interface StageOptions {
  readonly engine: Promise<Engine>;
  readonly screen: Screen;
  readonly tempo: Tempo;
  /** Environment variables of the functions, in the place of the template's. */
  readonly settings: Readonly<Record<string, string>>;
  readonly onEvent: (event: LocalAppEvent) => void;
  /** Aborts when all of it is to end. */
  readonly signal: AbortSignal;
}

/**
 * Synthesizes the app and starts it, all but its schedules: the scenarios fire those.
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
  const gate = await owned(resources, signal, () => Gate.open(endpoint));
  const environment = { ...options.settings, AWS_ENDPOINT_URL_DYNAMODB: gate.url };
  const { onEvent } = options;
  const app = await owned(resources, signal, () =>
    startApp({ assemblyDir, engine, schedules: false, environment, onEvent }),
  );
  const { tables, functions, stateMachines } = app.spec;
  for (const { name, definition } of stateMachines) {
    const problems = definitionProblems(JSON.parse(definition));
    if (problems.length > 0) throw new InvalidDefinitionError(name, problems);
  }
  step.done(`${tables.length} tables, ${functions.length} functions, ${stateMachines.length} state machines`);
  const dynamodb = resources.adopt(new DynamoDBClient(clientConfig), (client) => endOf(client));
  const streams = resources.adopt(new DynamoDBStreamsClient(clientConfig), (client) => endOf(client));
  const documents = DynamoDBDocumentClient.from(dynamodb);
  const history = () => leaseChanges(dynamodb, streams, app.tableName("Leases/Resource"));
  return { app, gate, documents, screen, tempo, history };
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
  const bundling = new Bundling(screen);
  const synthesis = synthesize(folder, signal, { stretch, onBundling: (path) => bundling.add(path) });
  // The signal has ended it by then, or is about to.
  resources.defer(() => synthesis.catch(() => undefined));
  await synthesis;
  bundling.done();
  step.done("a cloud assembly, as cdk synth makes it");
  return folder;
}

/** The step of the synthesis that takes longest. */
class Bundling {
  readonly #screen: Screen;
  #step: ReturnType<Screen["step"]> | undefined;
  #count = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  add(path: string): void {
    this.#step ??= this.#screen.step("Bundling the functions");
    this.#count += 1;
    this.#step.tell(`${this.#count}: ${path}`);
  }

  done(): void {
    this.#step?.done(`${this.#count} bundles`);
  }
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

async function endOf(client: { destroy(): void }): Promise<void> {
  client.destroy();
}

function notHere(): Ending {
  const text =
    "The demonstration wants a DynamoDB on this machine: unset DYNAMODB_ENDPOINT, or give it a local URL.";
  return new Ending(text, exitCodes.failed);
}
