import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import type { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { transact } from "../../functions/support/transactions.ts";

/** A table that cancels a transaction for these reasons, one after the other, and then takes it. */
class BusyTable {
  readonly pauses: number[] = [];
  sent = 0;
  #now = 0;
  readonly #cancellations: (readonly string[])[];

  constructor(...cancellations: (readonly string[])[]) {
    this.#cancellations = cancellations;
  }

  transact(remainingMs = 60_000, fraction: () => number = () => 1): Promise<readonly number[]> {
    const documents = { send: () => this.#answer() } as unknown as DynamoDBDocumentClient;
    return transact(documents, [], {
      remainingMs: () => remainingMs - this.#now,
      pause: async (ms) => {
        this.pauses.push(ms);
        this.#now += ms;
      },
      fraction,
    });
  }

  async #answer(): Promise<object> {
    this.sent += 1;
    const codes = this.#cancellations.shift();
    if (codes === undefined) return {};
    const CancellationReasons = codes.map((Code) => ({ Code }));
    throw new TransactionCanceledException({ message: codes.join(), $metadata: {}, CancellationReasons });
  }
}

describe("a transaction of a system", () => {
  test.each(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])(
    "that is cancelled for a %s is sent again until it lands, after pauses that grow to 2 s",
    async (code) => {
      const table = new BusyTable(...Array<string[]>(9).fill(["None", code]));
      expect(await table.transact()).toEqual([]);
      expect(table.pauses).toEqual([25, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
      expect(table.sent).toBe(10);
    },
  );

  test("pauses by chance for half of that, so that those that collided do not meet again", async () => {
    const table = new BusyTable(["TransactionConflict"], ["TransactionConflict"]);
    const chances = [0, 0.5];
    await table.transact(60_000, () => chances.shift() ?? 1);
    expect(table.pauses).toEqual([13, 38]);
  });

  test("is sent again only while its caller has time left, and rejects with DynamoDB's own error then", async () => {
    for (const [remainingMs, sent] of [
      [2_000, 1],
      [2_026, 2],
      [2_300, 4],
    ] as const) {
      const table = new BusyTable(...Array<string[]>(100).fill(["ThrottlingError"]));
      await expect(table.transact(remainingMs)).rejects.toThrow(TransactionCanceledException);
      expect(table.sent).toBe(sent);
    }
  });

  test("gives every entry whose condition did not hold, and does not try again", async () => {
    const failed = "ConditionalCheckFailed";
    const table = new BusyTable(["None", failed, "ThrottlingError", failed]);
    expect(await table.transact()).toEqual([1, 3]);
    expect(table.sent).toBe(1);
  });

  test("that is cancelled for a reason that does not pass rejects at once", async () => {
    const table = new BusyTable(["None", "ValidationError"]);
    await expect(table.transact()).rejects.toThrow(TransactionCanceledException);
    expect(table.sent).toBe(1);
  });
});
