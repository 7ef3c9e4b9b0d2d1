/** The same on the runner that AWS gives for tests, whose checkpoint server is AWS's own model of Lambda's. */
import { type DurableContext, InvokeError, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { LocalDurableTestRunner } from "@aws/durable-execution-sdk-js-testing";
import { LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { withDurableLease } from "@leasehold/durable";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const key = "orders/7";
let store: MemoryLeaseStore;
const client = (): LeaseClient => new LeaseClient({ store });

// In real time: the runner's skipped time is nobody's clock, and a lease's time is.
beforeAll(() => LocalDurableTestRunner.setupTestEnvironment());
afterAll(() => LocalDurableTestRunner.teardownTestEnvironment());
beforeEach(() => {
  store = new MemoryLeaseStore();
});

describe("on AWS's own test runner, a durable lease", () => {
  test("goes on over a suspension, is renewed meanwhile, and is released", async () => {
    const tokens: string[] = [];
    const handler = withDurableExecution(
      async (_: unknown, context: DurableContext) =>
        await withDurableLease(context, client(), key, { leaseDurationMs: 3_000 }, async (lease, own) => {
          await own.step("first", async () => void tokens.push(lease.token));
          await own.wait("for long", { seconds: 4 });
          return await own.step("second", async () => {
            tokens.push(lease.token);
            return lease.fencingToken;
          });
        }),
    );
    const run = await new LocalDurableTestRunner({ handlerFunction: handler }).run();
    expect(run.getStatus()).toBe("SUCCEEDED");
    expect(tokens).toHaveLength(2);
    expect(tokens[0]).toBe(tokens[1]);
    expect(run.getResult()).toEqual(expect.any(Number));
    expect(await client().inspect(key)).toBeUndefined();
  });

  test("checks before it invokes another function, and gives that function's result or its error", async () => {
    const handler = withDurableExecution(
      async (_: unknown, context: DurableContext) =>
        await withDurableLease(context, client(), key, {}, async (_lease, own) => {
          const refused = await own
            .invoke("charge", "charge:1", { amount: -3 })
            .catch((error: unknown) => error);
          expect(refused).toBeInstanceOf(InvokeError);
          return await own.invoke<{ amount: number }, string>("charge", "charge:1", { amount: 3 });
        }),
    );
    const runner = new LocalDurableTestRunner({ handlerFunction: handler });
    runner.registerFunction("charge:1", async ({ amount }: { amount: number }) => {
      // The runner loses an answer that comes while the invocation is about to be suspended.
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (amount < 0) throw new RangeError("a negative amount");
      return `charged ${amount}`;
    });
    const run = await runner.run();
    expect(run.getResult()).toBe("charged 3");
    const operations = run.getOperations().map((operation) => operation.getName() ?? "");
    expect(operations.filter((name) => /check|charge|invoke/.test(name))).toEqual([
      ...["lease:check", "charge"],
      ...["lease:check", "charge"],
    ]);
  });
});
