/** A handler that takes its lock by dynamodb-lock-client, on the AWS SDK 3. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { lockClientFailOpen } from "../contenders/lock-client.ts";

const place = { dynamodb: new DynamoDBClient({}), clientConfig: {}, leaseTable: "", plainTable: "locks" };
const locks = lockClientFailOpen.open(place, { leaseDurationMs: 10_000 });

export async function handler({ key }: { readonly key: string }): Promise<void> {
  const lock = await locks.acquire(key);
  await lock.release();
}
