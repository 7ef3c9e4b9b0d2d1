import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { JobRuns, TaskSet } from "../../packages/jobs/src/index.ts";
import { entriesOf, transactIn } from "../support/own-transaction.ts";
import { ownTransactionsContract, type UserTable } from "./own-transactions-contract.ts";

/** The user's transactions on a store in memory. */
function usersOf(store: MemoryLeaseStore): UserTable {
  const call = { signal: new AbortController().signal, isCurrent: () => true };
  return {
    async write(id, items) {
      const mine = {
        key: { pk: id, sk: "user" },
        condition: "attribute_not_exists(#done)",
        names: { "#done": "done" },
        values: { ":done": 1 },
        action: { update: "SET #done = :done" },
      };
      await transactIn(store, [mine, ...entriesOf(items)]);
    },
    has: async (id) =>
      (await store.get({ key: { pk: id, sk: "user" }, consistent: true }, call)) !== undefined,
  };
}

describe("the user's own transactions in memory", () => {
  let store: MemoryLeaseStore;
  beforeEach(() => {
    store = new MemoryLeaseStore();
  });
  ownTransactionsContract(
    () => ({ store }),
    () => usersOf(store),
  );

  it("an entry without values has no map of them, which DynamoDB would refuse", () => {
    const [adding, checking] = new TaskSet(new LeaseClient({ store }), "set").addEntries([{ id: "1" }]);
    expect(adding?.Update).toHaveProperty("ExpressionAttributeValues");
    expect(checking?.ConditionCheck).not.toHaveProperty("ExpressionAttributeValues");
  });

  it("bad input is refused before anything is sent", async () => {
    const client = new LeaseClient({ store });
    const tasks = new TaskSet(client, "set");
    const many = Array.from({ length: 51 }, (_, index) => ({ id: String(index) }));
    expect(() => tasks.addEntries(many)).toThrow(/^tasks .*51 tasks.*at most 50/);
    expect(tasks.addEntries(many.slice(1))).toHaveLength(100);
    expect(() => tasks.addEntries([{ id: "1" }], { format: "json" as never })).toThrow(/format/);
    await tasks.add([{ id: "1" }]);
    const task = await tasks.claim();
    await expect(task?.succeedIn("send" as never)).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(task?.succeedIn(async () => undefined, { remark: 1 as never })).rejects.toThrow(/remark/);
    expect(task?.held).toBe(true);
    const runs = new JobRuns(client, "job");
    const run = runs.run(new Date(), async (attempt) => {
      await expect(attempt.succeedIn("send" as never)).rejects.toMatchObject({ option: "work" });
      await attempt.succeedIn(async () => undefined, { form: 1 } as never);
    });
    await expect(run).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "options.form" });
  });
});
