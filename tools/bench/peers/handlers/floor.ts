/** A handler that writes before and after its work, and has no lock. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { BareWrites } from "../contenders/bare-writes.ts";

const writes = new BareWrites({ dynamodb: new DynamoDBClient({}), leaseTable: "leases" });

export async function handler({ key }: { readonly key: string }): Promise<void> {
  const written = await writes.acquire(key);
  await written.release();
}
