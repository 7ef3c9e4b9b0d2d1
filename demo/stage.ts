import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { type LocalAppEvent, startApp, startEngine } from "@leasehold/local";
import { Gate } from "./gate.ts";
import { Interruption } from "./interruption.ts";
import type { Stage } from "./scenario.ts";
import type { Screen } from "./screen.ts";
import { synthesize } from "./synthesis.ts";

/**
 * Synthesizes the app and starts it, all but its schedules: the scenarios fire those.
 *
 * Everything that was started ends with the resources.
 *
 * @param settings environment variables of the functions, in the place of the template's
 */
export async function setStage(
  resources: AsyncDisposableStack,
  screen: Screen,
  settings: Readonly<Record<string, string>>,
  onEvent: (event: LocalAppEvent) => void,
): Promise<Stage> {
  const assemblyDir = await mkdtemp(join(tmpdir(), "leasehold-"));
  resources.defer(() => rm(assemblyDir, { recursive: true, force: true }));
  const cut = new AbortController();
  resources.defer(() => cut.abort());
  screen.note("Synthesizing infra/app.ts, and starting a DynamoDB ...");
  const [engine] = await Promise.all([startEngine(), synthesize(assemblyDir, cut.signal)]);
  resources.use(engine);
  const { endpoint } = engine.clientConfig;
  if (endpoint === undefined) {
    throw new Interruption(
      "The demonstration wants a DynamoDB on this machine: leave DYNAMODB_ENDPOINT unset.",
      1,
    );
  }
  const gate = resources.use(await Gate.open(endpoint));
  const environment = { ...settings, AWS_ENDPOINT_URL_DYNAMODB: gate.url };
  const app = resources.use(await startApp({ assemblyDir, engine, schedules: false, environment, onEvent }));
  const { tables, functions, stateMachines } = app.spec;
  screen.note(
    `${engine.version} answers. The app: ${tables.length} tables, ${functions.length} functions, ` +
      `${stateMachines.length} state machines.`,
  );
  const dynamodb = resources.adopt(new DynamoDBClient(engine.clientConfig), async (client) =>
    client.destroy(),
  );
  return { app, gate, documents: DynamoDBDocumentClient.from(dynamodb), screen };
}
