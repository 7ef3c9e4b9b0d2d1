import {
  type AttributeValue,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { LeaseClient as LightClient } from "@leasehold/client/light";
import { attributeNames } from "@leasehold/client/schema";
import { lightStoreOn } from "../test/support/light.ts";
import type { Target } from "../test/support/proxy.ts";
import type { TestTable } from "../test/support/table.ts";
import { median, quantile } from "./statistics.ts";

/** How long one protocol takes to take a lock and give it back. */
export interface CycleTimes {
  readonly protocol: string;
  readonly requests: number;
  readonly cycles: number;
  readonly p50: number;
  readonly p99: number;
  /** Of the medians over all rounds, to the bare writes'. */
  readonly ratio: number;
  /** The lowest ratio of a round. */
  readonly lowest: number;
  /** The highest ratio of a round. */
  readonly highest: number;
  /** This process's own for one cycle: the median of all rounds. */
  readonly cpuUs: number;
  /** Of these, to the bare writes'. */
  readonly cpuRatio: number;
}

interface Protocol {
  readonly name: string;
  readonly requests: number;
  readonly cycle: () => Promise<void>;
  /** The times of each round. */
  readonly rounds: number[][];
  /** The CPU of one cycle in each round. */
  readonly cpu: number[];
}

const owner = "host:1234:5678abcd";
const warmUpCycles = 600;
const rounds = 16;
const cyclesPerRound = 100;

/** Measures the protocols in turns, on one engine, so that whatever disturbs one disturbs all. */
export async function benchCycles(leases: TestTable, engine: Target): Promise<CycleTimes[]> {
  const { tableName } = leases;
  const lightClient = new LightClient({ store: lightStoreOn(engine, { tableName }), owner });
  const protocols: readonly Protocol[] = [
    newProtocol("two bare UpdateItem", 2, bareWrites(leases)),
    newProtocol("the lease's two UpdateItem, by hand", 2, await byHand(leases)),
    newProtocol("lease: acquire, release", 2, leaseCycle(leases.client({ owner }), leases.newKey())),
    newProtocol("the same, by the light store", 2, leaseCycle(lightClient, leases.newKey())),
    newProtocol("Get, conditional Put, conditional Delete", 3, getPutDelete(leases)),
  ];
  for (const { cycle } of protocols) await timesOf(cycle, warmUpCycles);
  for (let round = 0; round < rounds; round += 1) {
    const turn = round % protocols.length;
    for (const protocol of [...protocols.slice(turn), ...protocols.slice(0, turn)]) {
      const before = process.cpuUsage();
      protocol.rounds.push(await timesOf(protocol.cycle, cyclesPerRound));
      const { user, system } = process.cpuUsage(before);
      protocol.cpu.push((user + system) / cyclesPerRound);
    }
  }

  const [bare] = protocols as [Protocol, ...Protocol[]];
  const bareMedians = bare.rounds.map(median);
  return protocols.map(({ name, requests, rounds: times, cpu }) => {
    const all = times.flat();
    const ratios = times.map((round, index) => median(round) / (bareMedians[index] ?? Number.NaN));
    return {
      protocol: name,
      requests,
      cycles: all.length,
      p50: median(all),
      p99: quantile(all, 0.99),
      ratio: median(all) / median(bare.rounds.flat()),
      lowest: Math.min(...ratios),
      highest: Math.max(...ratios),
      cpuUs: median(cpu),
      cpuRatio: median(cpu) / median(bare.cpu),
    };
  });
}

async function timesOf(cycle: () => Promise<void>, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const start = performance.now();
    await cycle();
    times.push(performance.now() - start);
  }
  return times;
}

function newProtocol(name: string, requests: number, cycle: () => Promise<void>): Protocol {
  return { name, requests, cycle, rounds: [], cpu: [] };
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

/** The attributes that a lease writes, in the same sizes. */
function leaseAttributes(): Record<"token" | "ttl", AttributeValue> & Record<string, AttributeValue> {
  const now = Date.now();
  return {
    token: { S: crypto.randomUUID() },
    version: { N: "1" },
    owner: { S: owner },
    acquiredAt: { N: String(now) },
    expiresAt: { N: String(now + 30_000) },
    leaseDurationMs: { N: "30000" },
    ttl: { N: String(Math.ceil(now / 1000) + 604_830) },
  };
}

/** What any lock on DynamoDB has to do at the least: to write that it is taken, and to write that it is not. */
function bareWrites({ dynamodb, tableName: TableName, newKey }: TestTable): () => Promise<void> {
  const Key = { pk: { S: newKey() }, sk: { S: "lease" } };
  const names = Object.keys(leaseAttributes());
  const taken = `SET ${names.map((name) => `#${name} = :${name}`).join(", ")}, #fence = :acquiredAt`;
  const free = `SET #releasedToken = :token, #ttl = :ttl REMOVE ${names
    .filter((name) => name !== "ttl")
    .map((name) => `#${name}`)
    .join(", ")}`;
  const placeholders = Object.fromEntries(names.map((name) => [`#${name}`, name]));
  return async () => {
    const attributes = leaseAttributes();
    const values = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`:${name}`, value]));
    await dynamodb.send(
      new UpdateItemCommand({
        TableName,
        Key,
        UpdateExpression: taken,
        ExpressionAttributeNames: { ...placeholders, "#fence": "fence" },
        ExpressionAttributeValues: values,
      }),
    );
    const { token, ttl } = attributes;
    await dynamodb.send(
      new UpdateItemCommand({
        TableName,
        Key,
        UpdateExpression: free,
        ExpressionAttributeNames: { ...placeholders, "#releasedToken": "releasedToken" },
        ExpressionAttributeValues: { ":token": token, ":ttl": ttl },
      }),
    );
  };
}

/** What a client does that looks before it writes: read, conditional put, conditional delete. */
function getPutDelete({ dynamodb, tableName: TableName, newKey }: TestTable): () => Promise<void> {
  const Key = { pk: { S: newKey() }, sk: { S: "lease" } };
  return async () => {
    const { Item } = await dynamodb.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
    if (Item !== undefined) throw new Error("the bench found its lock held");
    const attributes = leaseAttributes();
    await dynamodb.send(
      new PutItemCommand({
        TableName,
        Item: { ...Key, ...attributes },
        ConditionExpression: "attribute_not_exists(pk)",
      }),
    );
    await dynamodb.send(
      new DeleteItemCommand({
        TableName,
        Key,
        ConditionExpression: "#token = :token",
        ExpressionAttributeNames: { "#token": "token" },
        ExpressionAttributeValues: { ":token": attributes.token },
      }),
    );
  };
}
