import { InvalidOptionsError, LeaseClient, type LeaseTransactItem } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { JobRuns, TaskSet } from "../../packages/jobs/src/index.ts";
import { ownTransactionsContract, type UserTable } from "./own-transactions-contract.ts";

/** The user's transactions on a store in memory, as DynamoDB does them. */
function usersOf(store: MemoryLeaseStore): UserTable {
  const plain = (values: Record<string, { S?: string; N?: string }> = {}) =>
    Object.fromEntries(Object.entries(values).map(([name, { S, N }]) => [name, S ?? Number(N)]));
  const call = { signal: new AbortController().signal, isCurrent: () => true };
  return {
    async write(id, entries) {
      const mine = {
        key: { pk: id, sk: "user" },
        condition: "attribute_not_exists(#done)",
        names: { "#done": "done" },
        values: { ":done": 1 },
        action: { update: "SET #done = :done" },
      };
      const theirs = entries.map(({ ConditionCheck, Update, Delete }: LeaseTransactItem) => {
        const entry = ConditionCheck ?? Update ?? Delete;
        if (entry === undefined) throw new Error("an entry is empty");
        const key = plain(entry.Key);
        return {
          key: { pk: String(key.pk), sk: String(key.sk) },
          condition: entry.ConditionExpression,
          names: entry.ExpressionAttributeNames,
          values: plain(entry.ExpressionAttributeValues),
          action: Update
            ? { update: Update.UpdateExpression }
            : Delete
              ? ("delete" as const)
              : ("check" as const),
        };
      });
      const { applied } = await store.transact([mine, ...theirs], call);
      if (!applied) throw Object.assign(new Error("cancelled"), { name: "TransactionCanceledException" });
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

  it("bad input is refused before anything is sent", async () => {
    const client = new LeaseClient({ store });
    const tasks = new TaskSet(client, "set");
    const many = Array.from({ length: 51 }, (_, index) => ({ id: String(index) }));
    expect(() => tasks.addEntries(many)).toThrow(InvalidOptionsError);
    expect(() => tasks.addEntries([{ id: "1" }], { format: "json" as never })).toThrow(/format/);
    await tasks.add([{ id: "1" }]);
    const task = await tasks.claim();
    await expect(task?.succeedIn("send" as never)).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(task?.succeedIn(async () => undefined, { remark: 1 as never })).rejects.toThrow(/remark/);
    expect(task?.held).toBe(true);
    const runs = new JobRuns(client, "job");
    const run = runs.run(new Date(0), (attempt) =>
      attempt.succeedIn(async () => undefined, { form: 1 } as never),
    );
    await expect(run).rejects.toThrow(InvalidOptionsError);
  });
});
