// @module-tag long
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { InvokeResult } from "@leasehold/local";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { doneKey, orderKey, transferKey } from "../../../functions/import-orders/schema.ts";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { changedAssembly } from "../../support/assembly.ts";
import { kindOf } from "../../support/lease-writes.ts";
import type { Matcher } from "../../support/proxy.ts";
import { hold } from "../../support/proxy-behaviours.ts";
import { Transfers } from "../../support/transfers.ts";
import { takeableAt } from "../../support/watching.ts";

/** What the function has in the template is too long to wait for. Its lease is as long. */
const timeoutSeconds = 4;
const transfer = "Imports/Transfer";
let it: TestApp;
let transfers: Transfers;

beforeAll(async () => {
  const assemblyDir = await changedAssembly("short-transfer", (resources) => {
    const [id] = Object.keys(resources).filter((name) => /^ImportsTransfer[0-9A-F]{8}$/.test(name));
    const properties = resources[id ?? ""]?.Properties;
    if (properties?.Timeout === undefined) throw new Error("there is no such function");
    properties.Timeout = timeoutSeconds;
  });
  it = await startTestApp({ assemblyDir });
  transfers = new Transfers(it);
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});
beforeEach(() => it.proxy.reset());

interface Run {
  readonly requestId: string;
  readonly result: Promise<InvokeResult>;
}

function run(event: object): Run {
  const requestId = randomUUID();
  return { requestId, result: it.app.invoke(transfer, event, { requestId }) };
}

/** Matches the transaction that imports a chunk; counted from 0. */
function imports(index: number): Matcher {
  const { sk } = orderKey(`chunk-${index}/0`);
  return ({ operation, body }) =>
    operation === "TransactWriteItems" && JSON.stringify(body).includes(`"${sk}"`);
}

const takesOver: Matcher = ({ operation, body }) =>
  operation === "UpdateItem" && kindOf({ values: body.ExpressionAttributeValues }) === "takeOver";

/** Runs the import until the lock is free, and gives that run. */
async function runOnceFree(): Promise<Run & { readonly outcome: unknown; readonly skipped: number }> {
  for (let skipped = 0; ; skipped++) {
    const { requestId, result } = run({ kind: "import" });
    const { payload: outcome, functionError } = await result;
    expect(functionError, JSON.stringify(outcome)).toBeUndefined();
    const isSkipped = (outcome as { readonly result: string }).result === "skipped";
    if (!isSkipped) return { requestId, result, outcome, skipped };
    await delay(50);
  }
}

/** How often each chunk's end is written down, and under which fencing token. */
async function tokens(): Promise<Record<string, unknown>> {
  const { pk } = doneKey("import", "");
  const items = await it.items("Imports/Orders");
  return Object.fromEntries(
    items.filter((item) => item.pk === pk).map(({ sk, fencingToken }) => [sk, fencingToken]),
  );
}

test.for([["killed"], ["frozen, and ended by its function's timeout"]] as const)(
  "an instance is %s with a chunk under way: the next gets in when the lease is over, and not before, does the rest, and the late chunk is fenced off",
  async ([mishap]) => {
    await transfers.seed(3);
    const write = hold();
    it.proxy.next(imports(1), write);
    const first = run({ kind: "import" });
    await it.proxy.arrival(imports(1));
    const { id } = await it.environmentOf(first.requestId);
    if (mishap === "killed") await it.app.kill(id);
    else it.app.freeze(id);
    const stoppedAt = Date.now();
    const left = await it.leases.inspect(transferKey);

    const { requestId, outcome, skipped } = await runOnceFree();
    expect(outcome).toMatchObject({ result: "ran", chunks: 2, isUnfinished: false });
    expect(skipped).toBeGreaterThan(0);
    const takenOverAt = performance.timeOrigin + (it.proxy.requests.findLast(takesOver)?.at ?? Number.NaN);
    expect(takenOverAt).toBeGreaterThanOrEqual(takeableAt(left, stoppedAt));
    const takeover = it.leaseEvents(requestId).find(({ type }) => type === "takeover");
    expect(takeover).toMatchObject({ from: { owner: left?.owner } });
    expect(await first.result).toMatchObject({ functionError: "Unhandled" });

    const after = await it.items("Imports/Orders");
    const { body } = await write.letGo();
    expect(JSON.parse(body).CancellationReasons[0]).toMatchObject({ Code: "ConditionalCheckFailed" });
    expect(await it.items("Imports/Orders")).toEqual(after);
    expect(await tokens()).toEqual({
      "chunk-0": left?.fencingToken,
      "chunk-1": Number(left?.fencingToken) + 1,
      "chunk-2": Number(left?.fencingToken) + 1,
    });
  },
);

test("with heartbeats nobody else gets in: a workflow outlives its lease twice over, and imports and exports of others are skipped all that time", async () => {
  await transfers.seed(4);
  const workflow = transfers.start();
  const { lease } = await transfers.keeperOf(workflow);
  let isOver = false;
  const finished = it.app.finished(workflow).finally(() => {
    isOver = true;
  });
  const seen: { readonly result: string; readonly holder?: string }[] = [];
  while (!isOver) {
    const kind = seen.length % 2 === 0 ? "import" : "export";
    const { payload } = await run({ kind, waitMs: 500 }).result;
    seen.push(payload as (typeof seen)[number]);
  }
  expect(await finished).toMatchObject({ status: "SUCCEEDED" });
  // The last one may have met the release.
  const during = seen.slice(0, -1);
  expect(during.length * 500).toBeGreaterThan(2 * lease.leaseDurationMs);
  expect(new Set(during.map(({ result }) => result))).toEqual(new Set(["skipped"]));
  expect(new Set(during.map(({ holder }) => holder))).toEqual(new Set([lease.owner]));
  expect(await tokens()).toEqual(
    Object.fromEntries([0, 1, 2, 3].map((index) => [`chunk-${index}`, lease.fencingToken])),
  );
});
