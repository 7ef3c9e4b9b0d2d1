/** A handler that takes its lock by the protocol of the AWS Java client. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { GetPutDelete } from "../contenders/get-put-delete.ts";

const place = { dynamodb: new DynamoDBClient({}), clientConfig: {}, leaseTable: "", plainTable: "locks" };
const locks = new GetPutDelete(place, { leaseDurationMs: 20_000 });

export async function handler({ key }: { readonly key: string }): Promise<void> {
  const lock = await locks.acquire(key);
  await lock.release();
}
