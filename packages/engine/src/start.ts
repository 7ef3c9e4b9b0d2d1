// Chooses the engine of this machine.

import { checkEngineOptions } from "./check-options.ts";
import type { Lookup } from "./command.ts";
import { findDynamoDbLocal } from "./dynamodb-local.ts";
import { findDynoxide } from "./dynoxide.ts";
import { endpointEngine } from "./endpoint.ts";
import { EngineUnavailableError } from "./errors.ts";
import { launch } from "./launch.ts";
import type { Engine, EngineOptions, LocalEngineName } from "./types.ts";

const finders: Readonly<Record<LocalEngineName, (env: NodeJS.ProcessEnv) => Promise<Lookup>>> = {
  "dynamodb-local": findDynamoDbLocal,
  dynoxide: findDynoxide,
};

/** AWS's own engine first: it is the reference for the service's behaviour. */
const byPreference: readonly LocalEngineName[] = ["dynamodb-local", "dynoxide"];

/**
 * Starts the DynamoDB engine for this machine, and resolves when it answers.
 *
 * Without `engine` it is the endpoint in DYNAMODB_ENDPOINT, if that is set; else DynamoDB Local, if Java 17 or newer is
 * found; else dynoxide. A started engine is empty unless `dataDir` holds data, and is gone when stop() resolves or when
 * this process has ended, SIGKILL included.
 *
 * Rejects with EngineUnavailableError when there is nothing to start, with EngineStartError when the engine does not
 * come up within 30 s, with InvalidEndpointError when DYNAMODB_ENDPOINT is neither a URL nor `aws`, with
 * EndpointUnreachableError within 5 s when no DynamoDB answers there, with InvalidEngineOptionError, and with the signal's
 * reason.
 *
 * @example
 * await using engine = await startEngine();
 * const dynamodb = new DynamoDBClient({ ...engine.clientConfig });
 */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const { engine, port, dataDir, env = process.env, signal } = checkEngineOptions(options);
  const endpoint = env.DYNAMODB_ENDPOINT;
  if (engine === undefined && endpoint) return endpointEngine(endpoint, env, signal);

  const missing: string[] = [];
  for (const name of engine === undefined ? byPreference : [engine]) {
    const found = await finders[name](env);
    if ("command" in found) return launch(found.command, { port, dataDir, signal });
    missing.push(found.missing);
  }
  throw new EngineUnavailableError(missing);
}

/**
 * Names the engines that this machine can start, the preferred one first.
 *
 * Nothing is started, and DYNAMODB_ENDPOINT does not matter.
 *
 * @example
 * describe.for(await availableEngines())("the contract on %s", (engine) => { ... });
 */
export async function availableEngines(env: EngineOptions["env"] = process.env): Promise<LocalEngineName[]> {
  const found = await Promise.all(byPreference.map((name) => finders[name](env)));
  return byPreference.filter((_name, index) => "command" in (found[index] ?? {}));
}
