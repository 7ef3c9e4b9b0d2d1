import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { environmentNames } from "@leasehold/client/environment";
import { metricNames } from "@leasehold/client/metrics";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { makeTable } from "../support/table.ts";

const inSource = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/**
 * The runtime clients that the handlers are run by. AWS's own (aws-lambda-ric) has to be compiled, so that it is no
 * dependency: set LAMBDA_RUNTIME_CLIENT to its index.mjs to run it here, too. In its place stands the local app's client
 * with AWS's console.
 */
const own = process.env.LAMBDA_RUNTIME_CLIENT;
const clients: Readonly<Record<string, readonly string[]>> = {
  "the local client with AWS's console": [
    "--import",
    inSource("test/support/lambda-console.ts"),
    inSource("tools/local/src/lambda/bootstrap.ts"),
  ],
  ...(own === undefined ? {} : { "AWS's own client": [own] }),
};

const table = await makeTable(inject("engine"));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lambda-logs-"));
  await build({
    entryPoints: [inSource("test/integration/fixtures/logging-handlers.ts")],
    outfile: join(folder, "index.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    mainFields: ["module", "main"],
    conditions: ["leasehold-source", "module"],
  });
});
afterAll(async () => {
  table.close();
  await rm(folder, { recursive: true });
});

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

/** Runs a handler for one event, as Lambda does; gives its answer and what stands in its log. */
async function invoke(client: readonly string[], handler: string, settings: Record<string, string>) {
  let isServed = false;
  const answered = Promise.withResolvers<{ path: string; body: unknown }>();
  const server = createServer(async (request, response) => {
    if (request.method === "POST") {
      const body = await textOf(request);
      response.writeHead(202).end("{}");
      answered.resolve({ path: (request.url ?? "").replace(/^.*\//, ""), body: JSON.parse(body) });
      return;
    }
    // The next event never comes.
    if (isServed) return;
    isServed = true;
    const headers = {
      "lambda-runtime-aws-request-id": crypto.randomUUID(),
      "lambda-runtime-deadline-ms": String(Date.now() + 30_000),
      "lambda-runtime-invoked-function-arn": "arn:aws:lambda:us-east-1:000000000000:function:job",
    };
    response.writeHead(200, headers).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { endpoint } = inject("engine").clientConfig as { readonly endpoint: string };
  const child = spawn(process.execPath, [...client, `index.${handler}`], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH,
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
      // AWS's client asks by node:http then, and not by its compiled part.
      AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1: "true",
      AWS_LAMBDA_FUNCTION_NAME: "job",
      AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "128",
      AWS_LAMBDA_LOG_GROUP_NAME: "/aws/lambda/job",
      AWS_LAMBDA_LOG_STREAM_NAME: "2026/11/21/[$LATEST]1",
      AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x",
      LAMBDA_TASK_ROOT: folder,
      _HANDLER: `index.${handler}`,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      [environmentNames.tableName]: table.tableName,
      [environmentNames.key]: table.newKey(),
      [environmentNames.job]: "nightly",
      ...settings,
    },
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
    server.closeAllConnections();
    server.close();
  });
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => lines.push(line));
  }
  child.once("exit", (code) => answered.reject(new Error(`it ended with ${code}: ${lines.join("\n")}`)));
  const answer = await answered.promise;
  child.kill("SIGTERM");
  await once(child, "close");
  return { ...answer, lines };
}

/** The metrics that CloudWatch finds: a line has to be an object that says so at its top. */
function metricsIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    if (!line.startsWith("{")) return [];
    const { _aws } = JSON.parse(line) as {
      readonly _aws?: {
        readonly CloudWatchMetrics: readonly { readonly Metrics: readonly { Name: string }[] }[];
      };
    };
    return _aws?.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name)) ?? [];
  });
}

const logSettings = {
  "the text format": {},
  "the JSON format": { AWS_LAMBDA_LOG_FORMAT: "JSON" },
  "the JSON format at level WARN": { AWS_LAMBDA_LOG_FORMAT: "JSON", AWS_LAMBDA_LOG_LEVEL: "WARN" },
};

describe.each(Object.entries(clients))("in a function that is run by %s", (_, client) => {
  describe.each(Object.entries(logSettings))("with %s", (name, settings) => {
    test.each(["plain", "chain"])(
      "the metrics of a %s handler are found, beside its own onEvent",
      async (handler) => {
        const { path, body, lines } = await invoke(client, handler, settings);
        expect({ path, body }).toEqual({ path: "response", body: "done" });
        const { acquired, waitTime, released, holdTime, jobSucceeded } = metricNames;
        expect(metricsIn(lines)).toEqual([acquired, waitTime, released, holdTime, jobSucceeded]);
        // The console is the one that the settings ask for.
        const said = lines.filter((line) => line.includes("a line of the handler's own"));
        expect(said).toHaveLength(name.endsWith("WARN") ? 0 : 1);
        for (const line of said) expect(line.startsWith("{")).toBe(name.includes("JSON"));
      },
    );
  });
});
