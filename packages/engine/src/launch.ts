// Starts an engine on a free port, and resolves only once an answer surely came from that process.

import { mkdir } from "node:fs/promises";
import { type IncomingHttpHeaders, request } from "node:http";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { localClientConfig } from "./client-config.ts";
import type { EngineCommand } from "./command.ts";
import { EngineStartError } from "./errors.ts";
import { type GuardedProcess, spawnGuarded } from "./guarded-process.ts";
import type { Engine } from "./types.ts";

const host = "127.0.0.1";
const startTimeoutMs = 30_000;
const pollMs = 10;
const answerTimeoutMs = 1000;

/** The port is free when it is chosen and may be taken before the engine binds it. */
const portAttempts = 5;
const mostPortsTried = 100;

/** DynamoDB Local: "Address already in use". dynoxide: "port 8000 is already in use". */
const portTaken = /already in use/i;

/** The port and the data of an engine. */
export interface LaunchOptions {
  readonly port?: number | undefined;
  readonly dataDir?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Starts an engine on a free port and resolves when it answers.
 *
 * Rejects with EngineStartError when it exits first, or when it has not answered after 30 s. Also rejects with the
 * signal's reason, after the engine has ended.
 */
export async function launch(command: EngineCommand, options: LaunchOptions = {}): Promise<Engine> {
  const { dataDir, signal } = options;
  const folder = dataDir === undefined ? undefined : resolve(dataDir);
  if (folder !== undefined) await mkdir(folder, { recursive: true });
  let wanted = options.port;
  for (let attempt = 1; ; attempt++) {
    const port = await freePort(wanted);
    signal?.throwIfAborted();
    const child = spawnGuarded(command.file, command.args(port, folder), command);
    const ready = await waitUntilReady(command, child, port, signal);
    if (ready && !signal?.aborted) return engineOf(command, child, port);

    const exited = child.ended;
    await child.stop();
    signal?.throwIfAborted();
    const output = child.output().trim();
    if (exited && portTaken.test(output) && attempt < portAttempts) {
      wanted = wanted === undefined ? undefined : port + 1;
      continue;
    }
    const problem = exited ? "exited at its start" : `did not answer within ${startTimeoutMs / 1000} s`;
    throw new EngineStartError(`The DynamoDB engine ${command.name} ${problem}`, output);
  }
}

function engineOf(command: EngineCommand, child: GuardedProcess, port: number): Engine {
  child.unref();
  const endpoint = `http://${host}:${port}`;
  return {
    name: command.name,
    version: command.version(child.output()),
    endpoint,
    pid: child.pid,
    clientConfig: localClientConfig(endpoint),
    exited: child.exited,
    stop: child.stop,
    [Symbol.asyncDispose]: child.stop,
  };
}

async function waitUntilReady(
  command: EngineCommand,
  child: GuardedProcess,
  port: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const deadline = performance.now() + startTimeoutMs;
  while (!child.ended && !signal?.aborted && performance.now() < deadline) {
    const answer = await ask(port, command.probeHeaders);
    if (answer !== undefined && command.isOurs(answer, child.output())) return true;
    await delay(pollMs);
  }
  return false;
}

function ask(
  port: number,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingHttpHeaders | undefined> {
  return new Promise((settle) => {
    // Its own agent: the global one may keep the connection, or use a proxy.
    const probe = request({ host, port, method: "POST", headers, agent: false, timeout: answerTimeoutMs });
    probe.once("response", (response) => {
      response.resume();
      settle(response.headers);
    });
    probe.once("timeout", () => probe.destroy());
    probe.once("error", () => settle(undefined));
    probe.end();
  });
}

/** The wanted port, or the next free one; without a wanted port, any. */
async function freePort(wanted = 0): Promise<number> {
  for (let port = wanted; ; port++) {
    try {
      return await tryPort(port);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!isTaken || port >= Math.min(wanted + mostPortsTried, 65_535)) throw error;
    }
  }
}

function tryPort(port: number): Promise<number> {
  return new Promise((settle, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => settle(typeof address === "object" && address ? address.port : port));
    });
  });
}
