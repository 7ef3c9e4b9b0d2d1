import {
  type AttributeValue,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { LeaseClient as LightClient } from "@leasehold/client/light";
import { attributeNames } from "@leasehold/client/schema";
import { lightStoreOn } from "../../test/support/light.ts";
import type { Target } from "../../test/support/proxy.ts";
import { environmentOf, type TestTable } from "../../test/support/table.ts";
import { BareWrites } from "./peers/contenders/bare-writes.ts";
import { type Contestant, type CycleTimes, measureInTurns } from "./turns.ts";

/** How long one protocol takes to take a lock and give it back; ratios are to bare writes. */
export interface ProtocolTimes extends CycleTimes {
  readonly requests: number;
}

const owner = "host:1234:5678abcd";

/** Measures the protocols in turns, on one engine. */
export async function benchCycles(leases: TestTable, engine: Target): Promise<ProtocolTimes[]> {
  const { tableName } = leases;
  // The SDK reads the environment at the first request.
  Object.assign(process.env, environmentOf(engine));
  const ownClient = new LeaseClient({ tableName, owner });
  const lightClient = new LightClient({ store: lightStoreOn(engine, { tableName }), owner });
  const protocols: readonly (Contestant & { readonly requests: number })[] = [
    { name: "two bare UpdateItem", requests: 2, cycle: bareWrites(leases) },
    { name: "the lease's two UpdateItem, by hand", requests: 2, cycle: await byHand(leases) },
    {
      name: "lease: acquire, release",
      requests: 2,
      cycle: leaseCycle(leases.client({ owner }), leases.newKey()),
    },
    { name: "the same, by a client of its own", requests: 2, cycle: leaseCycle(ownClient, leases.newKey()) },
    { name: "the same, by the light store", requests: 2, cycle: leaseCycle(lightClient, leases.newKey()) },
  ];
  const measured = await measureInTurns(protocols, { warmUpCycles: 600, rounds: 16, cyclesPerRound: 100 });
  return measured.map((times, index) => ({ ...times, requests: protocols[index]?.requests ?? 0 }));
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
