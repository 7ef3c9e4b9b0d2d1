import { request as httpRequest } from "node:http";
import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import { type Clock, type LeaseStore, systemClock } from "@leasehold/client";
import { onTestFinished } from "vitest";

/** A console that serves a store of the test's. */
export interface ServedConsole {
  /** The address that it has printed, with its secret. */
  readonly address: string;
  readonly origin: string;
  readonly secret: string;
  /** What it has said on stderr until now. */
  readonly said: () => string;
  /** Ends it as Ctrl-C does, and gives its exit code. */
  readonly end: () => Promise<number>;
}

/** Starts `leasehold console` in this process, on a free port. It ends with the test. */
export async function serveConsole(
  store: LeaseStore,
  args: readonly string[] = [],
  { clock = systemClock, env = {} }: { readonly clock?: Clock; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<ServedConsole> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const interruption = new AbortController();
  let said = "";
  stderr.on("data", (chunk) => {
    said += chunk;
  });
  const firstLine = new Promise<string>((resolve) =>
    stdout.once("data", (chunk) => resolve(String(chunk).trim())),
  );
  const code = runCommandLine(["console", "--port", "0", ...args], {
    stdin,
    stdout,
    stderr,
    env: { LEASEHOLD_TABLE_NAME: store.tableName, USER: "alice", ...env },
    clock,
    open: async () => store,
    signals: { signal: interruption.signal, redirect: () => () => {} },
  });
  const end = async (): Promise<number> => {
    interruption.abort();
    return await code;
  };
  onTestFinished(async () => {
    await end();
  });
  const address = await Promise.race([
    firstLine,
    code.then((ended) => Promise.reject(new Error(`the console has ended with ${ended}: ${said}`))),
  ]);
  const { origin, hash } = new URL(address);
  const secret = new URLSearchParams(hash.slice(1)).get("secret") ?? "";
  return { address, origin, secret, said: () => said, end };
}

/** An HTTP answer. */
export interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/** Sends a request with any headers; `fetch` forbids some of those that an attacker may send. */
export async function ask(
  url: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** Opens a session, and gives its cookie. */
export async function sessionOf({ origin, secret }: ServedConsole): Promise<string> {
  const { headers } = await ask(`${origin}/session`, {
    method: "POST",
    headers: { "x-leasehold-write": "1" },
    body: secret,
  });
  return String(headers["set-cookie"]).split(";")[0] ?? "";
}
