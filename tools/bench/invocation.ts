import { leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { startProxy, type Target } from "../../test/support/proxy.ts";
import { sdkClient, type TestTable } from "../../test/support/table.ts";

const remainingMs = 15 * 60_000;

/** Gives the requests of an invocation whose lease is sized from its remaining time, as they went over the wire. */
export async function benchInvocation(engine: Target, leases: TestTable): Promise<readonly string[]> {
  const proxy = await startProxy(engine);
  const dynamodb = sdkClient(proxy);
  try {
    const handler = middy()
      .use(leaseLock({ client: leases.client({ dynamodb }), key: leases.newKey(), metrics: false }))
      .handler(async (_event, context) => context.lock.lease.expiresAt - Date.now());
    const context = {
      functionName: "bench",
      awsRequestId: crypto.randomUUID(),
      getRemainingTimeInMillis: () => remainingMs,
    } as Context;
    const leaseMs = await handler({}, context as never);
    if (leaseMs < remainingMs) throw new Error("the lease does not cover the invocation");
    return [...proxy.operations];
  } finally {
    dynamodb.destroy();
    await proxy.close();
  }
}
