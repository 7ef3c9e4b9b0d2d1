import type { CallOptions, LeaseStore, TransactionEntry } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { newKey } from "./new-key.ts";

/** What every store does with transactions and queries; run for memory and for every engine. */
export function storeContract(place: () => LeaseStore): void {
  const call: CallOptions = { signal: new AbortController().signal, isCurrent: () => true };
  let pk: string;

  beforeEach(() => {
    pk = newKey("store");
  });

  const put = (sk: string, value: string, condition = "attribute_not_exists(#value)"): TransactionEntry => ({
    key: { pk, sk },
    condition,
    names: { "#value": "value" },
    values: { ":value": value },
    action: { update: "SET #value = :value" },
  });
  const read = async (sk: string): Promise<unknown> =>
    (await place().get({ key: { pk, sk }, consistent: true }, call))?.value;
  const query = (more: object = {}) => ({
    keyCondition: "#pk = :pk AND begins_with(#sk, :prefix)",
    names: { "#pk": "pk", "#sk": "sk" },
    values: { ":pk": pk, ":prefix": "n#" },
    consistent: true,
    ...more,
  });

  describe("a transaction", () => {
    it("writes, deletes and checks all of its items", async () => {
      await place().transact([put("old", "1"), put("witness", "1")], call);
      const holds = { condition: "#value = :one", names: { "#value": "value" }, values: { ":one": "1" } };
      const result = await place().transact(
        [
          put("new", "2"),
          { key: { pk, sk: "old" }, ...holds, action: "delete" },
          { key: { pk, sk: "witness" }, ...holds, action: "check" },
        ],
        call,
      );
      expect(result).toMatchObject({ applied: true, refusals: [] });
      expect(await Promise.all(["new", "old", "witness"].map(read))).toEqual(["2", undefined, "1"]);
    });

    it("that is refused writes nothing, and shows each item that refused", async () => {
      await place().transact([put("b", "taken")], call);
      const result = await place().transact([put("a", "1"), put("b", "2"), put("c", "3")], call);
      expect(result.applied).toBe(false);
      expect(result.refusals).toEqual([undefined, { item: { pk, sk: "b", value: "taken" } }, undefined]);
      expect(await read("a")).toBeUndefined();
    });

    it("shows a missing item that refused as missing", async () => {
      const missing = put("a", "1", "attribute_exists(#value)");
      const { refusals } = await place().transact([missing], call);
      expect(refusals).toEqual([{ item: undefined }]);
    });
  });

  describe("a query", () => {
    beforeEach(async () => {
      const entries = ["n#2", "n#10", "n#1", "other"].map((sk) => put(sk, sk));
      await place().transact(entries, call);
    });

    it("gives the items under a key in the order of their sort keys, as texts", async () => {
      const { items, next } = await place().query(query(), call);
      expect(items.map(({ sk }) => sk)).toEqual(["n#1", "n#10", "n#2"]);
      expect(next).toBeUndefined();
    });

    it("gives them backwards", async () => {
      const { items } = await place().query(query({ descending: true }), call);
      expect(items.map(({ sk }) => sk)).toEqual(["n#2", "n#10", "n#1"]);
    });

    it("goes on behind an item that has been deleted since", async () => {
      const after = { pk, sk: "n#10" };
      const holds = { condition: "attribute_exists(#value)", names: { "#value": "value" }, values: {} };
      await place().transact([{ key: after, ...holds, action: "delete" }], call);
      const { items } = await place().query(query({ after }), call);
      expect(items.map(({ sk }) => sk)).toEqual(["n#2"]);
    });

    it("gives pages that join", async () => {
      const first = await place().query(query({ limit: 2 }), call);
      expect(first.items.map(({ sk }) => sk)).toEqual(["n#1", "n#10"]);
      const rest = await place().query(query({ limit: 2, after: first.next }), call);
      expect(rest.items.map(({ sk }) => sk)).toEqual(["n#2"]);
    });
  });
}
