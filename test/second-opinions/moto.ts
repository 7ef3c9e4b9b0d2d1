/**
 * moto, a simulation of AWS by others, as a second Step Functions, a second DynamoDB and, by its launcher, a second JSONata.
 * What moto cannot do is in docs/decisions/evidence.md.
 */
import { AssertionError, deepEqual, equal, match, ok } from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import {
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  type DescribeExecutionOutput,
  ListExecutionsCommand,
  SendTaskSuccessCommand,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from "@aws-sdk/client-sfn";
import { createLeaseTable, LeaseClient, type LeaseRecord } from "@leasehold/client";
import { type Json, jsonata } from "../../packages/cdk/src/workflow/asl.ts";
import { endedDefinition } from "../../packages/cdk/src/workflow/ended-definition.ts";
import { keeperDefinition } from "../../packages/cdk/src/workflow/keeper-definition.ts";
import { workflowDefinition } from "../../packages/cdk/src/workflow/workflow-definition.ts";
import { adminOf } from "../support/admin.ts";
import { deployed, machineArn, workflowTerms } from "../support/step-functions.ts";
import type { PythonTools } from "./python.ts";

/** A keeper has to renew within it, also on a busy machine: a lease that ends here is a failure. */
const leaseDurationMs = 30_000;
const region = "us-east-1";
/** Nothing waits for so long on an idle machine. */
const mostMinutes = 10;

/** Work that is stopped. moto does not stop a task that waits for an answer. */
const longWork: Json = {
  StartAt: "Work",
  States: { Work: { Type: "Wait", QueryLanguage: "JSONata", Seconds: 3_600, End: true } },
};

/** What moto wrote, and requests that failed. */
const log: string[] = [];

/** By what each says, when it passes. */
type Checks = Readonly<Record<string, () => Promise<void>>>;

/** Runs all checks at once, on a moto of their own; tells whether they passed. */
export async function checkOnMoto({ python }: PythonTools): Promise<boolean> {
  const launcher = join(import.meta.dirname, "moto_server.py");
  const credentials = { AWS_ACCESS_KEY_ID: "moto", AWS_SECRET_ACCESS_KEY: "moto" };
  Object.assign(process.env, credentials);
  const server = spawn(python, [launcher], {
    env: { ...process.env, NO_PROXY: "localhost,127.0.0.1", PYTHONWARNINGS: "ignore" },
    stdio: ["pipe", "pipe", "pipe"],
  });
  createInterface({ input: server.stderr }).on("line", (line) => {
    if (!line.includes('HTTP/1.1" 200')) log.push(line);
  });
  const ended = once(server, "exit").then(([code, signal]) => {
    throw new Error(`the server has ended with ${code ?? signal}`);
  });
  try {
    const [port] = await Promise.race([once(server.stdout, "data"), ended]);
    const checks = await stepFunctions(`http://127.0.0.1:${String(port).trim()}`);
    const passing = Object.entries(checks).map(async ([name, check]) => {
      await check();
      console.log(`moto: ${name}`);
    });
    await Promise.race([Promise.all(passing), ended]);
    deepEqual(
      log.filter((line) => line.startsWith("JSONata:")),
      [],
    );
    return true;
  } catch (error) {
    console.log(`What moto wrote at last:\n${log.slice(-60).join("\n")}\nmoto: FAILED\n`, error);
    return false;
  } finally {
    ended.catch(() => {}); // Ignored: it is to end now.
    server.kill("SIGKILL");
  }
}

/** Work that takes as long as the check wants: until the task is answered whose token it leaves in the table. */
function workUntilAnswered(tableName: string): Json {
  const Item = {
    pk: { S: jsonata("$states.input.key") },
    sk: { S: "task" },
    token: { S: jsonata("$states.context.Task.Token") },
  };
  const Work = {
    Type: "Task",
    QueryLanguage: "JSONata",
    Resource: "arn:aws:states:::aws-sdk:dynamodb:putItem.waitForTaskToken",
    Arguments: { TableName: tableName, Item },
    End: true,
  };
  return { StartAt: "Work", States: { Work } };
}

interface Begun {
  readonly work: string;
  readonly keeper: string;
  readonly token: string;
}

async function stepFunctions(endpoint: string): Promise<Checks> {
  const steps = new SFNClient({ endpoint, region });
  const dynamodb = new DynamoDBClient({ endpoint, region });
  const tableName = "leases";
  await createLeaseTable({ tableName, dynamodb });
  const client = new LeaseClient({ tableName, dynamodb, owner: "another" });
  const define = async (name: string, definition: unknown): Promise<void> => {
    const text = JSON.stringify(deployed(definition));
    const roleArn = "arn:aws:iam::123456789012:role/steps";
    await steps.send(new CreateStateMachineCommand({ name, definition: text, roleArn }));
  };
  const terms = { tableName, retentionMs: 604_800_000 };
  await define("keeper", keeperDefinition(terms));
  await define("ended", endedDefinition({ ...terms, keeperArn: machineArn("keeper") }));
  for (const [name, work] of [
    ["long", longWork] as const,
    ["answered", workUntilAnswered(tableName)] as const,
  ])
    await define(name, workflowDefinition(workflowTerms(work, { leaseDurationMs })));

  const start = async (machine: string, name: string, input: object): Promise<string> => {
    const execution = { stateMachineArn: machineArn(machine), name, input: JSON.stringify(input) };
    return String((await steps.send(new StartExecutionCommand(execution))).executionArn);
  };
  const describe = (executionArn: string): Promise<DescribeExecutionOutput> =>
    steps.send(new DescribeExecutionCommand({ executionArn }));
  const ends = (executionArn: string): Promise<DescribeExecutionOutput> =>
    eventually(`the end of ${executionArn}`, async () => {
      const description = await describe(executionArn);
      return description.status === "RUNNING" ? undefined : description;
    });
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other: moto takes seconds to read a definition, and little else goes on meanwhile. */
  const startKept = (
    machine: string,
    key: string,
  ): Promise<{ readonly work: string; readonly lease: LeaseRecord }> => {
    const kept = last.then(async () => {
      const work = await start(machine, key, { key });
      const lease = await eventually(`the first renewal of ${key}`, async () => {
        equal((await describe(work)).status, "RUNNING");
        const lease = await client.inspect(key);
        return lease !== undefined && lease.version >= 2 ? lease : undefined;
      });
      return { work, lease };
    });
    last = kept.catch(() => undefined);
    return kept;
  };
  /** Starts work, and waits until its keeper has renewed the lease twice after its start. */
  const begin = async (machine: string, key: string): Promise<Begun> => {
    const { work, lease: first } = await startKept(machine, key);
    equal(first.owner, `workflow:${work}`);
    equal(first.leaseDurationMs, leaseDurationMs);
    equal(await client.tryAcquire(key), undefined);
    await eventually(`two more renewals of ${key}`, async () => {
      const lease = await client.inspect(key);
      equal(lease?.token, first.token);
      return lease.version >= first.version + 2 && lease.expiresAt > first.expiresAt;
    });
    const keepers = await steps.send(new ListExecutionsCommand({ stateMachineArn: machineArn("keeper") }));
    const keeper = await eventually(`the keeper of ${key}`, async () => {
      for (const { executionArn = "" } of keepers.executions ?? []) {
        if ((await describe(executionArn)).input?.includes(first.token)) return executionArn;
      }
      return undefined;
    });
    return { work, keeper, token: first.token };
  };
  const finish = async (key: string): Promise<void> => {
    const Key = { pk: { S: key }, sk: { S: "task" } };
    const taskToken = await eventually(`the task of ${key}`, async () => {
      const { Item } = await dynamodb.send(new GetItemCommand({ TableName: tableName, Key }));
      return Item?.token?.S;
    });
    await steps.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify({ key }) }));
  };
  const stop = (executionArn: string): Promise<unknown> =>
    steps.send(new StopExecutionCommand({ executionArn, error: "Stopped", cause: "by a person" }));
  const isFree = (key: string): Promise<unknown> =>
    eventually(`the release of ${key}`, async () => (await client.inspect(key)) === undefined);

  return {
    "a lease is taken, kept, renewed and released, and the keeper ends": async () => {
      const { work, keeper } = await begin("answered", "start");
      await finish("start");
      const { status, output } = await ends(work);
      equal(status, "SUCCEEDED");
      deepEqual(JSON.parse(output ?? ""), { key: "start" });
      equal(await client.inspect("start"), undefined);
      equal((await ends(keeper)).status, "SUCCEEDED");
      ok(await client.tryAcquire("start", { heartbeat: false }));
    },
    "after a stop the keeper lets the lease go at its next look": async () => {
      const { work, keeper } = await begin("long", "stop");
      await stop(work);
      equal((await ends(work)).status, "ABORTED");
      await isFree("stop");
      equal((await ends(keeper)).status, "SUCCEEDED");
    },
    "the event of a stop lets the lease go, and the keeper finds that": async () => {
      const { work, keeper } = await begin("long", "event");
      await stop(work);
      const { status } = await ends(work);
      const ended = await start("ended", "event", { key: "event", detail: { executionArn: work, status } });
      await isFree("event");
      equal((await ends(ended)).status, "SUCCEEDED");
      equal((await ends(keeper)).status, "SUCCEEDED");
    },
    "when another holder has the lease, the keeper stops the work": async () => {
      const { work, keeper, token } = await begin("long", "loss");
      ok(await adminOf(client).forceRelease("loss", { token }));
      const other = await client.acquire("loss", { heartbeat: false });
      // moto forgets the error and the cause of a stop; the keeper ends with the same.
      equal((await ends(work)).status, "ABORTED");
      const end = await ends(keeper);
      deepEqual({ status: end.status, error: end.error }, { status: "FAILED", error: "LeaseLostError" });
      match(String(end.cause), /another holder has it/);
      equal((await client.inspect("loss"))?.token, other.token);
    },
  };
}

/** The first value that is there and not false. A request that fails is no value; an assertion that fails is the end. */
async function eventually<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const endsAt = performance.now() + mostMinutes * 60_000;
  while (performance.now() < endsAt) {
    const value = await look().catch((error: unknown) => {
      if (error instanceof AssertionError) throw error;
      log.push(`${what}: ${error}`);
    });
    if (value !== undefined && value !== false) return value;
    await delay(500);
  }
  throw new Error(`${what} did not come within ${mostMinutes} minutes`);
}
