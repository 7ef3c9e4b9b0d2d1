// @module-tag long
import { GetItemCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { messageFrom, startScript } from "../support/processes.ts";
import { anyRequest, type Behaviour, startProxy } from "../support/proxy.ts";
import {
  cutAnswer,
  delayAnswer,
  failWith,
  hang,
  loseAnswer,
  loseRequest,
} from "../support/proxy-behaviours.ts";
import { signatureFault } from "../support/signatures.ts";
import { makeTable } from "../support/table.ts";
import type { ContenderConfig, ContenderReport } from "./fixtures/light-contender.ts";

const engine = inject("engine");
const proxy = await startProxy(engine);
const table = await makeTable(engine);
const items = await makeTable(engine);

afterAll(async () => {
  await proxy.close();
  table.close();
  items.close();
});

const html: Behaviour = ({ reply }) =>
  reply({ status: 200, headers: { "content-type": "text/html" }, body: "<html>Sign in</html>" });
const pass: Behaviour = async (exchange) => exchange.reply(await exchange.forward());

/** What happens to a share of the requests, of a hundred. */
const faults: readonly (readonly [share: number, behaviour: Behaviour])[] = [
  [4, loseAnswer()],
  [4, loseRequest()],
  [3, failWith("InternalServerError", 500)],
  [3, failWith("ProvisionedThroughputExceededException")],
  [2, failWith("TransactionConflictException")],
  [2, html],
  [2, cutAnswer()],
  [4, delayAnswer(100)],
  [1, hang()],
];

test("processes that contend by the light store through a bad network keep each other out, and every request is signed", async () => {
  const key = table.newKey();
  const secretAccessKey = "a secret of the test's";
  const wrong: unknown[] = [];
  proxy.always(anyRequest, async (exchange) => {
    const { headers, body } = exchange.request;
    const signed = { headers, path: "/", body: JSON.stringify(body) };
    const fault = signatureFault(signed, { TORTURE: { secretAccessKey, sessionToken: "a token" } });
    if (fault !== undefined) {
      wrong.push(fault);
      return failWith(fault)(exchange);
    }
    let drawn = Math.random() * 100;
    const found = faults.find(([share]) => {
      drawn -= share;
      return drawn < 0;
    });
    await (found?.[1] ?? pass)(exchange);
  });

  const rounds = 25;
  const owners = ["a", "b", "c", "d"];
  const credentials = { accessKeyId: "TORTURE", secretAccessKey, sessionToken: "a token" };
  const reports = await Promise.all(
    owners.map((owner) => {
      const config: ContenderConfig = {
        clientConfig: { ...proxy.clientConfig, credentials },
        directConfig: engine.clientConfig,
        tableName: table.tableName,
        itemsTable: items.tableName,
        key,
        owner,
        rounds,
      };
      const child = startScript(new URL("./fixtures/light-contender.ts", import.meta.url), config, {
        ipc: true,
      });
      onTestFinished(() => {
        child.kill("SIGKILL");
      });
      return messageFrom<ContenderReport>(child);
    }),
  );

  expect(wrong).toEqual([]);
  const turns = reports.flatMap((report) => report.turns).sort((a, b) => a.fencingToken - b.fencingToken);
  const failures = reports.flatMap((report) => report.failures);
  // A release may fail after its turn.
  expect(turns.length + failures.length).toBeGreaterThanOrEqual(owners.length * rounds);
  expect(turns.length).toBeGreaterThan(2 * rounds);
  expect(new Set(turns.map(({ fencingToken }) => fencingToken)).size).toBe(turns.length);
  for (const [index, turn] of turns.entries()) {
    const next = turns[index + 1];
    if (next !== undefined) expect(next.from).toBeGreaterThanOrEqual(turn.to);
  }
  const count = await items.dynamodb.send(
    new GetItemCommand({ TableName: items.tableName, Key: { pk: { S: key }, sk: { S: "count" } } }),
  );
  expect(Number(count.Item?.count?.N)).toBe(turns.filter(({ counted }) => counted).length);
});
