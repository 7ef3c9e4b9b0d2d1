import type { Engine, EngineClientConfig } from "@leasehold/engine";

/** An engine that runs already, as `startApp` takes it, perhaps behind a proxy. Who started it stops it. */
export function engineAt(clientConfig: object, { name, version }: { name: string; version: string }): Engine {
  const config = clientConfig as EngineClientConfig;
  const stop = async (): Promise<void> => {};
  return {
    name: name as Engine["name"],
    version,
    endpoint: config.endpoint,
    pid: undefined,
    clientConfig: config,
    exited: new Promise(() => {}),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
