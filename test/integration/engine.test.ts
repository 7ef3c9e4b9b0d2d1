// @module-tag long
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import {
  availableEngines,
  EndpointUnreachableError,
  type Engine,
  EngineStartError,
  EngineUnavailableError,
  startEngine,
} from "@leasehold/engine";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/patience.ts";
import { type FakeJava, fakeJava, fakeServer } from "./fixtures/fake-java.ts";
import { startHolder, survivorsOf } from "./fixtures/holder.ts";

const available = await availableEngines();
const engines = ["dynamodb-local", "dynoxide"] as const;

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

function installJava(version: string, lines?: string): FakeJava {
  const java = fakeJava(version, lines);
  cleanups.push(java.remove);
  return java;
}

function pretendArchitecture(value: NodeJS.Architecture): void {
  const real = process.arch;
  Object.defineProperty(process, "arch", { value, configurable: true });
  cleanups.push(() => Object.defineProperty(process, "arch", { value: real, configurable: true }));
}

async function expectNothingLeft(pid: number | undefined): Promise<void> {
  expect(pid).toBeGreaterThan(1);
  await eventually(() => expect(survivorsOf(pid)).toEqual([]));
}

function portOf({ endpoint = "" }: Engine): number {
  return Number(new URL(endpoint).port);
}

describe.for(engines)("%s", (name) => {
  const lacking = !available.includes(name);

  test.skipIf(lacking)("answers the AWS SDK, with no tables in it", async () => {
    await using engine = await startEngine({ engine: name });
    const dynamodb = new DynamoDBClient({ ...engine.clientConfig });
    expect((await dynamodb.send(new ListTablesCommand({}))).TableNames).toEqual([]);
    dynamodb.destroy();
    expect(engine.name).toBe(name);
    expect(engine.version).toMatch(/^(DynamoDB Local|dynoxide) \d+\.\d+\.\d+$/);
    expect(engine.clientConfig.endpoint).toBe(engine.endpoint);
  });

  test.skipIf(lacking)("is gone when stop() resolves, however often it is called", async () => {
    const engine = await startEngine({ engine: name });
    expect(survivorsOf(engine.pid)).not.toEqual([]);
    await Promise.all([engine.stop(), engine.stop()]);
    expect(() => process.kill(engine.pid ?? 0, 0)).toThrow("ESRCH");
    await engine.stop();
    await expectNothingLeft(engine.pid);
  });

  test.skipIf(lacking)("takes the port that is wanted, or the next one that is free", async () => {
    await using first = await startEngine({ engine: name, port: 18_300 });
    await using second = await startEngine({ engine: name, port: portOf(first) });
    expect(portOf(first)).toBeGreaterThanOrEqual(18_300);
    expect(portOf(second)).toBeGreaterThan(portOf(first));
    expect(portOf(second)).toBeLessThan(portOf(first) + 100);
  });

  test.skipIf(lacking).for(["SIGKILL", "SIGTERM", "SIGINT"] as const)(
    "does not outlive a parent that gets %s",
    async (signal) => {
      const holder = startHolder(name, "stay");
      const engine = JSON.parse((await holder.nextLine()) ?? "");
      expect(survivorsOf(engine.pid)).not.toEqual([]);
      holder.process.kill(signal);
      await holder.ended;
      expect(holder.process.signalCode).toBe(signal);
      await expectNothingLeft(engine.pid);
    },
  );

  test.skipIf(lacking).for([
    ["calls process.exit()", "exit"],
    ["has nothing left to do", "leave"],
  ] as const)("does not outlive a parent that %s", async ([, behaviour]) => {
    const holder = startHolder(name, behaviour);
    const engine = JSON.parse((await holder.nextLine()) ?? "");
    await holder.ended;
    expect(holder.process.exitCode).toBe(0);
    await expectNothingLeft(engine.pid);
  });

  test.skipIf(lacking)("still serves a parent that handles SIGTERM by itself", async () => {
    const holder = startHolder(name, "handle-sigterm");
    const engine = JSON.parse((await holder.nextLine()) ?? "");
    holder.process.kill("SIGTERM");
    expect(await holder.nextLine()).toBe("the engine answered 400");
    await holder.ended;
    await expectNothingLeft(engine.pid);
  });
});

describe("the choice of the engine", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });

  /** A server where each answer has these headers; without them it never answers. */
  async function serverThatAnswers(headers: Record<string, string> | undefined): Promise<string> {
    const server = createServer((_, response) => {
      if (headers !== undefined) response.writeHead(400, headers).end("{}");
    });
    servers.push(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const dynamoDb = { "x-amzn-RequestId": "0123" };

  const [region, credentials] = ["us-east-1", { accessKeyId: "local", secretAccessKey: "local" }];
  test.for([
    ["dummy settings where the environment has none", {}, { region, credentials }],
    [
      "no others where the environment has its own",
      { AWS_REGION: "eu-west-1", AWS_ACCESS_KEY_ID: "AKIDEXAMPLE" },
      {},
    ],
    [
      "AWS_DEFAULT_REGION, which the SDK does not read",
      { AWS_DEFAULT_REGION: "eu-north-1" },
      { region: "eu-north-1", credentials },
    ],
  ] as const)("DYNAMODB_ENDPOINT goes first, with %s", async ([, env, settings]) => {
    const endpoint = await serverThatAnswers(dynamoDb);
    const engine = await startEngine({ env: { ...env, DYNAMODB_ENDPOINT: endpoint } });
    expect(engine).toMatchObject({ name: "endpoint", endpoint, pid: undefined });
    expect(engine.clientConfig).toEqual({ endpoint, ...settings });
    await engine.stop();
    await engine.stop();
  });

  test("an endpoint where nothing listens is named at once, with what to do", async () => {
    const endpoint = await serverThatAnswers(dynamoDb);
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    const error = await startEngine({ env: { DYNAMODB_ENDPOINT: endpoint } }).catch((reason) => reason);
    expect(error).toBeInstanceOf(EndpointUnreachableError);
    expect(error.code).toBe("ENDPOINT_UNREACHABLE");
    expect(error.message).toMatch(`DYNAMODB_ENDPOINT is ${endpoint}, and no DynamoDB answers there (connect`);
    expect(error.message).toMatch(/Start the engine .* correct the URL, or unset DYNAMODB_ENDPOINT/);
  });

  test("an endpoint that takes the request and never answers is named after 5 s", async () => {
    const endpoint = await serverThatAnswers(undefined);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const engine = startEngine({ env: { DYNAMODB_ENDPOINT: endpoint } });
      const refusal = expect(engine).rejects.toThrow("no answer within 5 s");
      await once(servers[0] as Server, "request");
      vi.advanceTimersByTime(5_000);
      await refusal;
    } finally {
      vi.useRealTimers();
    }
  });

  test("an endpoint where something else answers, such as a proxy, is refused", async () => {
    const endpoint = await serverThatAnswers({ server: "proxy" });
    await expect(startEngine({ env: { DYNAMODB_ENDPOINT: endpoint } })).rejects.toThrow(
      `${endpoint}, and no DynamoDB answers there (what answers is something else, with HTTP status 400)`,
    );
  });

  test.for(available)("%s is known as a DynamoDB where it is the endpoint", async (name) => {
    await using engine = await startEngine({ engine: name });
    const { endpoint } = engine;
    expect(await startEngine({ env: { DYNAMODB_ENDPOINT: endpoint } })).toMatchObject({ endpoint });
  });

  test("the endpoint aws leaves everything to the SDK", async () => {
    const engine = await startEngine({ env: { DYNAMODB_ENDPOINT: "aws" } });
    expect(engine).toMatchObject({ name: "endpoint", endpoint: undefined, clientConfig: {} });
  });

  test.for(["localhost:8000", "ftp://localhost", "AWS", "8000"])(
    "the endpoint %s is refused",
    async (value) => {
      await expect(startEngine({ env: { DYNAMODB_ENDPOINT: value } })).rejects.toThrow(
        `DYNAMODB_ENDPOINT must be "aws" or an http or https URL such as http://localhost:8000, not "${value}"`,
      );
    },
  );

  test.skipIf(!available.includes("dynoxide"))("a named engine goes before DYNAMODB_ENDPOINT", async () => {
    await using engine = await startEngine({ engine: "dynoxide", env: { DYNAMODB_ENDPOINT: "aws" } });
    expect(engine.name).toBe("dynoxide");
  });

  test.for([
    ["17.0.15", true],
    ["17", true],
    ["21-ea", true],
    ["25.0.1", true],
    ["1.8.0_402", false],
    ["11.0.2", false],
    ["16-ea", false],
  ] as const)("whether Java %s runs DynamoDB Local: %s", async ([version, runs]) => {
    const found = await availableEngines({ PATH: installJava(version).bin });
    expect(found.includes("dynamodb-local")).toBe(runs);
  });

  test("an old Java in JAVA_HOME is passed over for a newer one on PATH", async () => {
    const env = { JAVA_HOME: installJava("1.8.0_402").home, PATH: `/nowhere:${installJava("21").bin}` };
    expect(await availableEngines(env)).toContain("dynamodb-local");
  });

  test.skipIf(!available.includes("dynoxide"))("an old Java leaves the choice to dynoxide", async () => {
    await using engine = await startEngine({ env: { PATH: installJava("11.0.2").bin } });
    expect(engine.name).toBe("dynoxide");
  });

  test("without Java and dynoxide, the error names both ways out", async () => {
    pretendArchitecture("riscv64");
    expect(await availableEngines({})).toEqual([]);
    const error = await startEngine({ env: {} }).catch((reason) => reason);
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.code).toBe("ENGINE_UNAVAILABLE");
    expect(error.message).toMatch(/no Java was found.*dynoxide runs on linux-x64 only.*-riscv64/);
    expect(error.message).toMatch(/Install Java 17 or newer, or set DYNAMODB_ENDPOINT/);
  });

  test("the error tells which Java was too old", async () => {
    const { bin } = installJava("1.8.0_402");
    const refusal = startEngine({ engine: "dynamodb-local", env: { PATH: bin } });
    await expect(refusal).rejects.toThrow(`${join(bin, "java")} is Java 1.8.0_402, older than 17`);
  });
});

describe("an engine that misbehaves", () => {
  test.for([
    ["before it listens", "exec sleep 60", "pid"],
    [
      "while it answers",
      `exec ${fakeServer(`
        serve((request, response) => {
          require("node:fs").writeFileSync("asked", "\\n");
          setTimeout(asOurs, 300, request, response);
        });`)}`,
      "asked",
    ],
  ] as const)("leaves nothing when its start is given up %s", async ([, lines, written]) => {
    const { home } = installJava("17", `echo $$ > pid; ${lines}`);
    const abort = new AbortController();
    const env = { ...process.env, DYNAMODB_ENDPOINT: "", JAVA_HOME: home };
    const starting = startEngine({ env, signal: abort.signal });
    const refusal = expect(starting).rejects.toThrow("given up");
    await eventually(() => expect(readFileSync(join(home, written), "utf8")).toMatch(/\n$/));
    const pid = Number(readFileSync(join(home, "pid"), "utf8"));
    expect(survivorsOf(pid)).not.toEqual([]);
    abort.abort(new Error("given up"));
    await refusal;
    await expectNothingLeft(pid);
  });

  test("reports its last output when it exits at its start", async () => {
    const { home } = installJava("17", "echo the disk is on fire >&2; exit 3");
    const error = await startEngine({ env: { JAVA_HOME: home } }).catch((reason) => reason);
    expect(error).toBeInstanceOf(EngineStartError);
    expect(error.code).toBe("ENGINE_START_FAILED");
    expect(error.message).toBe(
      "The DynamoDB engine dynamodb-local exited at its start. Its last output:\nthe disk is on fire",
    );
  });

  test("is started on another port when its own was taken, though the taker answers", async () => {
    const taken = fakeServer(`
      serve((_, response) => {
        response.end();
        console.error("java.net.BindException: Address already in use");
        setTimeout(() => process.exit(1), 100);
      });`);
    const ours = fakeServer("serve(asOurs);");
    const java = installJava(
      "17",
      `echo >> runs\nif [ "$(wc -l < runs)" -eq 1 ]; then ${taken}; else exec ${ours}; fi`,
    );
    const engine = await startEngine({
      env: { ...process.env, DYNAMODB_ENDPOINT: "", JAVA_HOME: java.home },
    });
    expect(readFileSync(join(java.home, "runs"), "utf8")).toBe("\n\n");
    expect(
      (await fetch(engine.endpoint ?? "", { headers: { origin: "http://a" } })).headers.get(
        "access-control-allow-origin",
      ),
    ).toBe("http://a");
    await engine.stop();
  });

  test("is given up when each of its ports was taken", async () => {
    const { home } = installJava("17", "echo >> runs; echo Address already in use; exit 1");
    await expect(
      startEngine({ engine: "dynamodb-local", env: { ...process.env, JAVA_HOME: home } }),
    ).rejects.toThrow("Address already in use");
    expect(readFileSync(join(home, "runs"), "utf8")).toBe("\n".repeat(5));
  });

  const stubborn = fakeServer('process.on("SIGTERM", () => {}); serve(asOurs);');
  test.for([
    ["when it ignores SIGTERM", `exec ${stubborn}`, 0],
    ["too where a launcher script stands in between", `${stubborn}; exit 0`, 2],
  ] as const)("is killed %s", async ([, lines, others]) => {
    const { home } = installJava("17", lines);
    const engine = await startEngine({ engine: "dynamodb-local", env: { JAVA_HOME: home } });
    expect(survivorsOf(engine.pid).length).toBeGreaterThan(others);
    await engine.stop();
    await expectNothingLeft(engine.pid);
  });

  test("does not outlive a parent that is killed while it waits for it", async () => {
    const { home } = installJava("17", "echo $$ > pid.new; mv pid.new pid; exec sleep 60");
    const holder = startHolder("dynamodb-local", "stay", { ...process.env, JAVA_HOME: home });
    const file = join(home, "pid");
    await eventually(() => expect(existsSync(file)).toBe(true));
    const pid = Number(readFileSync(file, "utf8"));
    expect(survivorsOf(pid)).not.toEqual([]);
    holder.process.kill("SIGKILL");
    await holder.ended;
    await expectNothingLeft(pid);
  });
});
