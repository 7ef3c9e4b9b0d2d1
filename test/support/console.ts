import { request as httpRequest } from "node:http";
import { LeaseClient, type LeaseStore } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { expect, onTestFinished } from "vitest";
import { type CallOptions, startLeasehold } from "./command-line.ts";
import { eventually } from "./patience.ts";

/**
 * A table with something on each page, for the time of a test: the locks `import` and `text`, for which another waits, a
 * permit, a run that has succeeded and one that has failed, and a task that has failed and one that waits. The text is in
 * all that programs write.
 */
export async function busyStore(text: string) {
  const store = new MemoryLeaseStore();
  const client = new LeaseClient({ store, owner: text });
  const terms = { leaseDurationMs: 3_600_000, data: { text } };
  const lease = await client.acquire("import", terms);
  const other = await client.acquire(text, terms);
  const permit = await new Semaphore(client, "payment-api", { permits: 5 }).acquire(terms);
  const waiting = new AbortController();
  const waiter = client
    .acquire(text, { order: fair(), waitMs: 3_600_000, signal: waiting.signal, owner: "waiter" })
    .catch(() => undefined);
  const fail = (): Promise<never> => Promise.reject(new Error(text));
  const runs = new JobRuns(client, "report");
  await runs.run("2026-11-21T02:00:00.000Z", () => undefined);
  await runs.run("2026-11-21T03:00:00.000Z", fail).catch(() => undefined);
  const tasks = new TaskSet(client, "orders", { maxAttempts: 1 });
  await tasks.add([{ id: "one", payload: { text } }]);
  await (await tasks.claim())?.fail(text);
  await tasks.add([{ id: "two" }]);
  onTestFinished(async () => {
    waiting.abort();
    await waiter;
    await client.close();
  });
  return { store, client, lease, tasks, tokens: [lease, other, permit].map(({ token }) => token) };
}

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
  options: Pick<CallOptions, "clock" | "env"> = {},
): Promise<ServedConsole> {
  const interruption = new AbortController();
  const { printed, ended } = startLeasehold(["console", "--port", "0", ...args], {
    ...{ store, signal: interruption.signal },
    ...options,
  });
  const end = async (): Promise<number> => {
    interruption.abort();
    return await ended;
  };
  onTestFinished(async () => {
    await end();
  });
  const early = ended.then((code) => Promise.reject(new Error(`ended with ${code}: ${printed.stderr}`)));
  await Promise.race([eventually(() => expect(printed.stdout).toContain("\n")), early]);
  const address = printed.stdout.trim();
  const { origin, hash } = new URL(address);
  const secret = new URLSearchParams(hash.slice(1)).get("secret") ?? "";
  return { address, origin, secret, said: () => printed.stderr, end };
}

/** An HTTP answer. */
export interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/** What is asked for. The path is that of the URL, or any text. */
interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request with any headers; `fetch` forbids some of those that an attacker may send. */
export async function ask(url: string, { body = "", ...asked }: Asked = {}): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent: false, ...asked }, (response) => {
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
