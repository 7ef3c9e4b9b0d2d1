/**
 * What may never leave a program: tokens and payloads in events, log lines, metrics, spans and errors; credentials and
 * variables of the process anywhere at all. Each secret here is marked, so that one look finds it wherever it is.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  type CallOptions,
  InvalidOptionsError,
  type Item,
  LeaseClient,
  type LeaseEvent,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { type LogEntry, type LoggedEvent, logListener } from "@leasehold/client/log";
import { metricsListener } from "@leasehold/client/metrics";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { instrumentLeasehold } from "@leasehold/opentelemetry";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  acquireLease,
  type LeaseService,
  releaseLease,
  renewLease,
} from "../../functions/leases/lease-service.ts";
import { answering } from "../../functions/support/answers.ts";
import { adminOf } from "../support/admin.ts";
import { leasehold } from "../support/command-line.ts";
import { ask, serveConsole, sessionOf } from "../support/console.ts";
import { itemsOf } from "../support/foreign-items.ts";
import { methods, newWorld, type World } from "../support/methods.ts";
import { refuse, say, startScriptedServer } from "../support/scripted-server.ts";
import { type Fate, ScriptedStore } from "../support/scripted-store.ts";

const payload = "MARKED-payload";
const taskToken = "MARKED-task-token";
const callbackId = "MARKED-callback";
const environment = {
  AWS_ACCESS_KEY_ID: "AKIAMARKEDACCESSKEY1",
  AWS_SECRET_ACCESS_KEY: "MARKED-secret-access-key",
  AWS_SESSION_TOKEN: "MARKED-session-token",
  DATABASE_PASSWORD: "MARKED-database-password",
};
const marks = /MARKED/;

/** Tokens that a look finds, and the test's own counter of them. */
const randomness = (): { token: () => string; fraction: () => number } => {
  let tokens = 0;
  return { token: () => `MARKED-token-${String(++tokens).padStart(6, "0")}`, fraction: () => 0.5 };
};

/** All that a log shows of a value, at any depth, with the causes of an error. */
function seen(value: unknown): string {
  const texts = [String(value), inspect(value, { depth: null, maxStringLength: null, maxArrayLength: null })];
  for (let at: unknown = value; at instanceof Error; at = at.cause) {
    texts.push(at.message, at.stack ?? "", JSON.stringify(at));
  }
  return [...texts, JSON.stringify(value)].join("\n");
}

/** A table whose items have a payload and a parked waiter's token, which every answer shows to the client. */
class LadenStore extends ScriptedStore {
  override async update(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    const result = await super.update(request, call);
    return { ...result, item: laden(result.item) };
  }

  override async get(...args: Parameters<ScriptedStore["get"]>): Promise<Item | undefined> {
    return laden(await super.get(...args));
  }
}

function laden(item: Item | undefined): Item | undefined {
  return item?.sk === "lease" ? { ...item, data: JSON.stringify(payload), taskToken, callbackId } : item;
}

/** Lets virtual time pass until a call has ended, and gives the error that it has ended with. */
async function errorOf(world: World, call: () => Promise<unknown>): Promise<unknown> {
  let [error, isSettled]: [unknown, boolean] = [undefined, false];
  const ended = call().then(
    () => (isSettled = true),
    (failure: unknown) => {
      [error, isSettled] = [failure, true];
    },
  );
  for (let minute = 0; minute < 5 && !isSettled; minute += 1) await world.clock.advance(60_000);
  // It waits for as long as it may: its end comes with the client's.
  world.store.weather = undefined;
  if (!isSettled) await Promise.all([world.client.close({ timeoutMs: 0 }).catch(() => {}), ended]);
  return error;
}

beforeEach(() => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** What all of a process's ears hear: listeners, log, console, metric lines, spans and what OpenTelemetry exports. */
function ears() {
  const events: unknown[] = [];
  const lines: unknown[] = [];
  const note = (entry: LogEntry): void => void lines.push(entry);
  // A failure that nobody listens to is printed.
  vi.spyOn(console, "error").mockImplementation((...printed) => void lines.push(printed));
  const log = logListener({ logger: { debug: note, info: note, warn: note, error: note } });
  const measure = metricsListener({ tableName: "leases", job: "job", keyDimension: true }, (line) =>
    lines.push(line),
  );
  const spans = new InMemorySpanExporter();
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  const stop = instrumentLeasehold({
    tracerProvider: new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }),
    meterProvider: new MeterProvider({ readers: [reader] }),
    keyDimension: true,
  });
  const onChannel = (message: unknown): void => void events.push(message);
  const channels = ["acquired", "lost", "released", "contended"].map((type) => `leasehold:${type}`);
  for (const channel of channels) subscribe(channel, onChannel);
  onTestFinished(() => {
    for (const channel of channels) unsubscribe(channel, onChannel);
  });
  const onEvent = (event: LoggedEvent): void => {
    events.push(event);
    log(event);
    measure(event as LeaseEvent);
  };
  const heard = async (): Promise<{ events: unknown[]; lines: unknown[]; telemetry: unknown[] }> => {
    stop();
    await reader.forceFlush();
    const ended = spans
      .getFinishedSpans()
      .map(({ name, attributes, events, status, links }) => ({ name, attributes, events, status, links }));
    return { events, lines, telemetry: [...ended, ...exporter.getMetrics()] };
  };
  return { onEvent, heard };
}

describe("a token, a payload and what a parked waiter is woken with", () => {
  it.each<Fate | undefined>([undefined, "answer lost", "request lost", "throttled", "rejected"])(
    "are in no event, log line, metric and span of any method, and in no error, where its writes meet: %s",
    async (fate) => {
      const { onEvent, heard } = ears();
      const failed: string[] = [];
      for (const [name, [, ...calls]] of Object.entries(methods)) {
        for (const prepare of calls) {
          const world = newWorld({ onEvent, randomness: randomness() }, new LadenStore());
          const call = await prepare(world);
          world.store.weather = fate;
          const error = await errorOf(world, call);
          if (error !== undefined) failed.push(name);
          expect(seen(error), name).not.toMatch(marks);
        }
      }
      expect(failed.length > 0).toBe(fate !== undefined);
      const { events, lines, telemetry } = await heard();
      expect(seen([events, lines, telemetry])).not.toMatch(marks);
    },
  );

  it("are in no refusal, whatever primitive refuses", async () => {
    const world = newWorld({ randomness: randomness() }, new LadenStore());
    const { client, other, semaphore, readWrite, runs, operator } = world;
    const terms = { data: payload, leaseDurationMs: 86_400_000 };
    const held = await other.acquire("k", terms);
    await semaphore.acquire({ permits: 2, ...terms });
    await readWrite.write(terms);
    await runs.run("2025-12-31T23:00:00.000Z", () => "done");
    const refusals = [
      () => client.acquire("k"),
      () => client.adopt({ ...held.toJSON(), token: "MARKED-token-forged" }).renew(),
      () =>
        adminOf(client)
          .forceRelease("k", { token: "MARKED-token-forged" })
          .then((isBroken) => Promise.reject(new Error(String(isBroken)))),
      () => semaphore.acquire(),
      () => readWrite.read(),
      () => runs.run("2025-12-31T23:00:00.000Z", () => "done"),
      () =>
        operator
          .break("k", { token: "MARKED-token-forged", reason: "INC-1" })
          .then((result) => Promise.reject(Object.assign(new Error(), { outcome: result.outcome }))),
    ];
    for (const refusal of refusals) {
      const error = await errorOf(world, async () => refusal());
      expect(error).toBeInstanceOf(Error);
      expect(seen(error)).not.toMatch(marks);
    }
  });

  it("are in no log of an error about an option that has been given in the wrong place", () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store });
    const credentials = { accessKeyId: "AKIA", secretAccessKey: "MARKED-secret" };
    const mistakes: (() => unknown)[] = [
      () => new LeaseClient({ dynamodb: { region: "eu-central-1", credentials } } as never),
      () => lightStore({ tableName: "leases", credential: credentials } as never),
      () => lightStore({ tableName: "leases", credentials: { secretAccessKey: "MARKED" } as never }),
      () => lightStore({ tableName: "leases", endpoint: "https://user:MARKED@proxy.example" }),
      () => client.adopt(JSON.stringify({ tableName: "leases", token: "MARKED-token" }) as never),
      () => client.adopt({ handle: { token: "MARKED-token" } } as never),
    ];
    for (const mistake of mistakes) {
      let error: unknown;
      try {
        mistake();
      } catch (failure) {
        error = failure;
      }
      expect(error).toBeInstanceOf(InvalidOptionsError);
      expect(String(error) + inspect(error, { depth: null }) + JSON.stringify(error)).not.toMatch(marks);
    }
  });

  it("an error about an option can be written as JSON, whatever value was refused", async () => {
    const client = new LeaseClient({ store: new MemoryLeaseStore() });
    const error = await client.acquire("k", { data: { count: 7n } }).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ code: "LEASE_INVALID_OPTIONS", value: 7n });
    expect(JSON.stringify(error)).toContain("LEASE_INVALID_OPTIONS");
  });

  it("are in no log line of the functions that hand leases on: the answer alone has the handle", async () => {
    const printed: unknown[] = [];
    for (const name of ["log", "info", "warn", "error"] as const) {
      vi.spyOn(console, name).mockImplementation((...values) => void printed.push(values));
    }
    vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(text) > 0);
    const { store, clock } = newWorld();
    const make = (): LeaseClient =>
      new LeaseClient({ store, clock, owner: "f", randomness: randomness(), onEvent: logListener() });
    const service: LeaseService = { leases: make(), forgetful: make, keyPrefix: "jobs/" };
    const lease = await acquireLease(service, { key: "jobs/a", data: payload }, 60_000);
    await renewLease(service, { lease });
    const refused = answering(() => acquireLease({ ...service, leases: make() }, { key: "jobs/a" }, 60_000));
    const error = await refused({}, { getRemainingTimeInMillis: () => 60_000 }).catch(
      (failure: unknown) => failure,
    );
    await releaseLease(service, { lease });
    vi.restoreAllMocks();
    expect(lease.token).toMatch(marks);
    expect(printed.length).toBeGreaterThan(0);
    expect(seen(printed) + String(error)).not.toMatch(marks);
  });
});

describe("credentials and variables of the process", () => {
  it("are in no request of any method: the owner is the host's name and the process's number", async () => {
    for (const [, ...calls] of Object.values(methods)) {
      for (const prepare of calls) {
        const world = newWorld();
        await errorOf(world, await prepare(world));
        expect(JSON.stringify(world.store.calls)).not.toMatch(marks);
      }
    }
    const store = new ScriptedStore();
    await new LeaseClient({ store }).acquire("k");
    expect(JSON.stringify(store.calls)).not.toMatch(/MARKED|AKIA/);
  });

  const failures = {
    "a refusal": refuse("AccessDeniedException"),
    "an expired session": refuse("ExpiredTokenException"),
    "a wrong signature": refuse("InvalidSignatureException", 403),
    "a failure": refuse("InternalServerError", 500),
    "an answer that is no JSON": say("nonsense", 200),
  };

  it.each(Object.entries(failures))(
    "are in no body of a request and in no error after %s, with the SDK and without",
    async (_name, reaction) => {
      const server = await startScriptedServer();
      onTestFinished(() => server.close());
      const place = { region: "eu-central-1", endpoint: server.url };
      const clients = [
        new LeaseClient({ tableName: "leases", dynamodb: new DynamoDBClient({ ...place, maxAttempts: 1 }) }),
        new LeaseClient({ store: lightStore({ tableName: "leases", ...place, maxAttempts: 1 }) }),
      ];
      for (const client of clients) {
        server.script(reaction);
        const error = await client.acquire("k", { data: payload }).catch((failure: unknown) => failure);
        expect(error).toBeInstanceOf(Error);
        expect(seen(error)).not.toMatch(marks);
        expect(server.requests.length).toBeGreaterThan(0);
        for (const { body, headers } of server.requests) {
          expect(body.replaceAll(payload, "")).not.toMatch(/MARKED|AKIA/);
          expect(JSON.stringify(headers)).not.toContain(environment.AWS_SECRET_ACCESS_KEY);
        }
      }
    },
  );

  it.each([["ls"], ["get", "k"], ["acquire", "k"], ["doctor"], ["audit"]])(
    "are not printed by leasehold %s, though it says all that it does",
    async (...command) => {
      const server = await startScriptedServer();
      onTestFinished(() => server.close());
      server.script(refuse("AccessDeniedException"));
      const args = [
        ...command,
        "--verbose",
        "--endpoint",
        server.url,
        "--region",
        "eu-central-1",
        "--table",
        "leases",
      ];
      const { code, stdout, stderr } = await leasehold(args, { env: environment });
      expect(code).not.toBe(0);
      expect(stderr).not.toBe("");
      expect(stdout + stderr).not.toMatch(marks);
    },
  );
});

describe("what people see", () => {
  /** What looks at many locks, or at their past. `leasehold get` shows the token of the one lock that it was asked for. */
  const looks = [
    ["ls", "--all"],
    ["history", "k"],
    ["audit"],
    ["jobs"],
    ["jobs", "runs", "job"],
    ["tasks"],
    ["tasks", "ls", "set"],
  ];

  async function laidTable(): Promise<MemoryLeaseStore> {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "one", randomness: randomness() });
    await client.acquire("k");
    return store;
  }

  it.each(looks)("never has a whole token where it is printed for people: leasehold %s", async (...args) => {
    const { stdout, stderr } = await leasehold(args, { store: await laidTable(), columns: 200 });
    expect(stdout + stderr).not.toMatch(/MARKED-token-\d/);
  });

  it("has neither the console's secret nor a session's on a page, on the terminal, in the table, and after an error", async () => {
    const store = await laidTable();
    const served = await serveConsole(store, ["--write"]);
    const cookie = await sessionOf(served);
    const session = cookie.split("=")[1] ?? "";
    const headers = { cookie, "x-leasehold-write": "1" };
    const act = (name: string, body: string) =>
      ask(`${served.origin}/act/${name}`, { method: "POST", headers, body });
    const answers = [
      await ask(`${served.origin}/`, { headers }),
      await ask(`${served.origin}/key?key=k`, { headers }),
      await ask(`${served.origin}/nowhere`, { headers }),
      await act("pause", JSON.stringify({ key: "feed", for: "1h", reason: "test" })),
      await act("break", "{"),
      await ask(`${served.origin}/audit`, { headers }),
    ];
    const items = await itemsOf(store);
    const all = JSON.stringify([answers.map(({ body }) => body), items]) + served.said();
    expect(session.length).toBeGreaterThan(40);
    expect(served.secret.length).toBeGreaterThan(20);
    for (const secret of [served.secret, session]) expect(all).not.toContain(secret);
    expect(all).not.toMatch(/MARKED-(?!token)/);
  });
});
