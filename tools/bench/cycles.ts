/**
 * The client's own cost in a cycle: a free lock is taken and given back, beside two bare writes and beside the client's own two
 * requests sent without it. docs/decisions/call-costs.md has what was decided by it.
 */
import {
  type AttributeValue,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { LeaseClient as LightClient } from "@leasehold/client/light";
import { attributeNames } from "@leasehold/client/schema";
import { startEngine } from "@leasehold/engine";
import { environmentOf, lightStoreOn, makeTable, type TestTable } from "../../test/support/table.ts";
import { BareWrites } from "./peers/contenders/bare-writes.ts";
import { note, table } from "./report.ts";
import { type Contestant, measureInTurns } from "./turns.ts";

const owner = "host:1234:5678abcd";

/** Measures in turns, on the engine of this machine, and prints a table. */
export async function benchCycles(): Promise<void> {
  await using engine = await startEngine();
  const leases = await makeTable(engine);
  const { tableName } = leases;
  // The SDK reads the environment at the first request.
  Object.assign(process.env, environmentOf(engine));
  const ownClient = new LeaseClient({ tableName, owner });
  const lightClient = new LightClient({ store: lightStoreOn(engine, { tableName }), owner });
  const contestants: readonly Contestant[] = [
    { name: "two bare UpdateItem", cycle: bareWrites(leases) },
    { name: "the lease's two UpdateItem, by hand", cycle: await byHand(leases) },
    {
      name: "acquire and release, a user's SDK client",
      cycle: leaseCycle(leases.client({ owner }), leases.newKey()),
    },
    { name: "acquire and release, its own SDK client", cycle: leaseCycle(ownClient, leases.newKey()) },
    { name: "acquire and release, the light store", cycle: leaseCycle(lightClient, leases.newKey()) },
  ];
  note(`${engine.version}, Node ${process.version}: measuring ...`);
  const measured = await measureInTurns(contestants, { warmUpCycles: 600, rounds: 16, cyclesPerRound: 100 });
  leases.close();
  table(
    ["", "p50 ms", "ratio of p50", "lowest", "highest round", "CPU µs", "ratio of CPU"],
    measured.map(({ name, p50, ratio, lowest, highest, cpuUs, cpuRatio }) => [
      name,
      p50.toFixed(3),
      ratio.toFixed(3),
      lowest.toFixed(3),
      highest.toFixed(3),
      cpuUs.toFixed(0),
      cpuRatio.toFixed(3),
    ]),
  );
  note(`${measured[0]?.cycles} cycles each, in turns; ratios are to the first line of the same round`);
}

function bareWrites({ tableName: leaseTable, dynamodb, newKey }: TestTable): () => Promise<void> {
  const writes = new BareWrites({ dynamodb, leaseTable });
  const key = newKey();
  return async () => {
    const written = await writes.acquire(key);
    await written.release();
  };
}

function leaseCycle(client: LeaseClient, key: string): () => Promise<void> {
  return async () => {
    const lease = await client.acquire(key);
    await lease.release();
  };
}

/** Where the client's writes have the token of their lease. */
const tokenPlaceholders: ReadonlySet<string> = new Set([
  ":token",
  ":ifToken",
  ":releasedToken",
  ":ifReleasedToken",
]);

/** The client's own two requests, sent without it: what is left is what its conditions cost the engine. */
async function byHand(leases: TestTable): Promise<() => Promise<void>> {
  const { dynamodb, tableName, newKey } = leases;
  const inputs: UpdateItemCommandInput[] = [];
  const recorder = Object.create(dynamodb, {
    send: {
      value: (command: UpdateItemCommand, options: object) => {
        inputs.push(command.input);
        return dynamodb.send(command, options);
      },
    },
  });
  const lease = await new LeaseClient({ tableName, dynamodb: recorder, owner }).acquire(newKey());
  await lease.release();
  return async () => {
    const token = { S: crypto.randomUUID() };
    let fence: AttributeValue | undefined;
    for (const input of inputs) {
      const { ExpressionAttributeValues: recorded = {} } = input;
      const ExpressionAttributeValues = { ...recorded };
      for (const placeholder of Object.keys(recorded)) {
        if (tokenPlaceholders.has(placeholder)) ExpressionAttributeValues[placeholder] = token;
        if (placeholder === ":ifFence" && fence !== undefined) ExpressionAttributeValues[placeholder] = fence;
      }
      const { Attributes } = await dynamodb.send(
        new UpdateItemCommand({ ...input, ExpressionAttributeValues }),
      );
      fence = Attributes?.[attributeNames.fence] ?? fence;
    }
  };
}
