// @module-tag long
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseTable, SingletonJob, SingletonJobTarget } from "@leasehold/cdk";
import type { LeaseClient } from "@leasehold/client";
import type { EnvironmentInfo, LocalApp } from "@leasehold/local";
import { Duration, type Stack } from "aws-cdk-lib";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { until } from "../support/app.ts";
import { startStack } from "./fixtures/stack.ts";

/** It knows nothing of any lock: it writes down when it begins and when it ends, with what it was sent. */
const handler = `
const { appendFileSync } = require("node:fs");
exports.handler = async ({ scheduledTime, fencingToken, input: { file, ms } }) => {
  const note = (what) => appendFileSync(file, JSON.stringify({ what, fencingToken, scheduledTime }) + "\\n");
  note("began");
  await new Promise((resolve) => setTimeout(resolve, ms));
  note("ended");
  return { fencingToken };
};`;

interface Note {
  readonly what: "began" | "ended";
  readonly fencingToken: number;
  readonly scheduledTime: string;
}

let started: Awaited<ReturnType<typeof startStack>>;
let app: LocalApp;
let leases: LeaseClient;
let file: string;
let files = 0;
let slots = 0;

/** An app with a job of a function. */
function build(stack: Stack): void {
  const fn = new LambdaFunction(stack, "Plain", {
    runtime: Runtime.NODEJS_24_X,
    handler: "index.handler",
    code: Code.fromInline(handler),
    timeout: Duration.seconds(4),
  });
  new SingletonJob(stack, "PlainJob", {
    table: new LeaseTable(stack, "Leases"),
    key: "PlainJob",
    schedule: ScheduleExpression.rate(Duration.minutes(1)),
    target: SingletonJobTarget.lockedLambda(fn, { retryAttempts: 3 }),
    lockAtMostFor: Duration.seconds(3),
  });
}

beforeAll(async () => {
  started = await startStack(build, { owner: "somebody else" });
  ({ app, client: leases } = started);
});
afterAll(() => started?.[Symbol.asyncDispose]());
beforeEach(() => {
  files += 1;
  file = join(started.directory, `notes-${files}`);
});

/** Starts a run as the scheduler does; each has a scheduled time of its own, unless it is given one. */
function start(ms: number, scheduledTime = nextSlot()): string {
  const input = { job: "PlainJob", scheduledTime, input: { file, ms } };
  return app.startExecution("PlainJob/Workflow/StateMachine", input).executionArn;
}

function nextSlot(): string {
  slots += 1;
  return new Date(Date.parse("2026-03-01T12:00:00Z") + slots * 60_000).toISOString();
}

function notes(): Note[] {
  try {
    const lines = readFileSync(file, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as Note);
  } catch {
    return [];
  }
}

const began = (times: number): Promise<void> =>
  until(`${times} calls`, () => notes().filter(({ what }) => what === "began").length >= times);

function busy(): EnvironmentInfo {
  const [one, ...more] = app.environments("Plain").filter(({ state }) => state === "busy");
  if (one === undefined || more.length > 0) throw new Error(`${more.length} more processes at work, or none`);
  return one;
}

const holder = async (): Promise<string | undefined> => (await leases.inspect("PlainJob"))?.owner;

test("a function is called under the lease, once for each scheduled time, by one run at a time", async () => {
  const slot = nextSlot();
  const first = start(3_000, slot);
  await began(1);
  expect(await holder()).toMatch(/^workflow:/);
  const twin = start(0, slot);
  const next = start(0);
  for (const run of [twin, next]) {
    expect(await app.finished(run)).toMatchObject({
      status: "SUCCEEDED",
      output: { skipped: true, reason: "held" },
    });
  }
  const { output } = await app.finished(first);
  const again = start(0, slot);
  expect(await app.finished(again)).toMatchObject({ output: { skipped: true, reason: "done" } });
  const calls = notes();
  expect(calls.map(({ what, scheduledTime }) => [what, scheduledTime])).toEqual([
    ["began", slot],
    ["ended", slot],
  ]);
  expect(output).toEqual({ fencingToken: calls[0]?.fencingToken });
  expect(await holder()).toBeUndefined();
});

test("a function that freezes is timed out, and called again; nobody else gets in meanwhile", async () => {
  const run = start(500);
  await began(1);
  app.freeze(busy().id);
  let attempts = 0;
  while (notes().length < 2) {
    expect(await leases.tryAcquire("PlainJob")).toBeUndefined();
    attempts += 1;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(attempts).toBeGreaterThan(4);
  expect(await app.finished(run)).toMatchObject({ status: "SUCCEEDED" });
  expect(notes().map(({ what }) => what)).toEqual(["began", "began", "ended"]);
});
