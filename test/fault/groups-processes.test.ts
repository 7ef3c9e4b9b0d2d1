// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { GroupWorkerConfig, GroupWorkerMessage } from "./fixtures/group-worker.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const items = await makeTable(engine);
afterAll(() => {
  table.close();
  items.close();
});

const openingBalance = 100;

interface Worker {
  readonly child: ChildProcess;
  readonly exit: Promise<unknown>;
  readonly told: GroupWorkerMessage[];
  readonly count: (type: GroupWorkerMessage["type"]) => number;
}

function startWorker(accounts: readonly string[], owner: string, own: Partial<GroupWorkerConfig>): Worker {
  const { clientConfig } = engine;
  const config = {
    clientConfig,
    tableName: table.tableName,
    accountsTable: items.tableName,
    accounts,
    owner,
    leaseDurationMs: 6_000,
    clockSkewMs: 200,
    transfers: 12,
    ...own,
  };
  const child = startScript(
    new URL("./fixtures/group-worker.ts", import.meta.url),
    config satisfies GroupWorkerConfig,
    { ipc: true },
  );
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const told: GroupWorkerMessage[] = [];
  child.on("message", (message: GroupWorkerMessage) => told.push(message));
  const count = (type: GroupWorkerMessage["type"]): number => told.filter((one) => one.type === type).length;
  return { child, exit: once(child, "exit"), told, count };
}

/** The locks that a worker holds while it waits. */
async function untilWaiting({ child, told }: Worker): Promise<readonly string[]> {
  for (;;) {
    const waiting = told.find(({ type }) => type === "waiting");
    if (waiting?.type === "waiting") return waiting.keys;
    await once(child, "message");
  }
}

async function open(account: string): Promise<void> {
  const Item = { pk: { S: account }, sk: { S: "balance" }, balance: { N: String(openingBalance) } };
  await items.dynamodb.send(new PutItemCommand({ TableName: items.tableName, Item }));
}

async function balanceOf(account: string): Promise<number> {
  const Key = { pk: { S: account }, sk: { S: "balance" } };
  const command = new GetItemCommand({ TableName: items.tableName, Key, ConsistentRead: true });
  return Number((await items.dynamodb.send(command)).Item?.balance?.N);
}

test("of workers that transfer under the locks of all accounts they touch, one is killed and one is frozen beyond its leases: the others get on, and no money is made or lost", async () => {
  const accounts = Array.from({ length: 8 }, table.newKey);
  await Promise.all(accounts.map(open));
  const killed = startWorker(accounts.slice(0, 4), "the killed", { waitsAt: 3 });
  const frozen = startWorker(accounts.slice(4), "the frozen", { waitsAt: 2 });
  const killedKeys = await untilWaiting(killed);
  const frozenKeys = await untilWaiting(frozen);
  frozen.child.kill("SIGSTOP");
  killed.child.kill("SIGKILL");
  await killed.exit;

  const others = ["b", "c", "d"].map((owner) => startWorker(accounts, owner, {}));
  await Promise.all(others.map(({ exit }) => exit));
  expect(others.map(({ count }) => count("transferred"))).toEqual([12, 12, 12]);
  const takenOver = others.flatMap(({ told }) =>
    told.flatMap((one) => (one.type === "takeover" ? [one.key] : [])),
  );
  expect(takenOver).toEqual(expect.arrayContaining([...killedKeys, ...frozenKeys]));

  // What it goes on with is there before it wakes: the write is the first thing that it does.
  frozen.child.send("go on");
  frozen.child.kill("SIGCONT");
  await frozen.exit;
  expect(frozen.told.find(({ type }) => type === "refused")).toEqual({ type: "refused", held: false });
  expect([frozen.count("refused"), frozen.count("transferred")]).toEqual([1, 11]);

  const balances = await Promise.all(accounts.map(balanceOf));
  expect(balances.reduce((sum, balance) => sum + balance, 0)).toBe(accounts.length * openingBalance);
  expect(balances.some((balance) => balance !== openingBalance)).toBe(true);
});
