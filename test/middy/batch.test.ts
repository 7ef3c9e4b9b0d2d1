import { LeaseLostError, LeaseUnavailableError } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { InvocationEndingError, type LeasedBatchOptions, type Lock, leasedBatch } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { collectUncaught } from "../support/uncaught.ts";
import { type Bench, bench } from "./support.ts";

interface Message {
  readonly messageId: string;
  readonly body: string;
}

const queue = "arn:aws:sqs:eu-central-1:111122223333:orders";
/** `a1` is message a1 of the customer a. */
const message = (messageId: string, group?: string, arn = queue) => ({
  messageId,
  eventSource: "aws:sqs",
  eventSourceARN: arn,
  body: messageId.slice(0, 1),
  attributes: group === undefined ? {} : { MessageGroupId: group },
});
const batchOf = (...ids: string[]) => ({ Records: ids.map((id) => message(id)) });
const fifo = (...ids: string[]) => ({
  Records: ids.map((id) => message(id, id.slice(-1), `${queue}.fifo`)),
});

let b: Bench;
/** What ran, in its order. */
let ran: string[];
let failures: [id: string, error: unknown][];
/** By message, what its work does. */
const works = new Map<string, (lock: Lock) => unknown>();

beforeEach(() => {
  b = bench();
  ran = [];
  failures = [];
  works.clear();
});

function handlerOf(options: Partial<LeasedBatchOptions<Message>> = {}) {
  const handler = leasedBatch<Message>(
    {
      client: b.client,
      clock: b.clock,
      key: ({ body }) => `customer/${body}`,
      onFailure: ({ messageId }, error) => failures.push([messageId, error]),
      ...options,
    },
    async ({ messageId }, _context, lock) => {
      ran.push(messageId);
      await works.get(messageId)?.(lock);
    },
  );
  return async (event: unknown, context = b.context()) => {
    const { batchItemFailures } = await handler(event, context);
    return batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
  };
}

const broken = new Error("the work is broken");
const fail = () => Promise.reject(broken);
const free = async (...keys: string[]) => {
  for (const key of keys) expect(await b.other.inspect(key)).toBeUndefined();
};

describe("the records of one key", () => {
  test("run one after the other under one lease, in their order, for 2 requests", async () => {
    const tokens: string[] = [];
    for (const id of ["a1", "a2", "a3"]) {
      works.set(id, async ({ lease }) => {
        tokens.push(lease.token);
        await Promise.resolve();
        expect(ran.at(-1)).toBe(id);
      });
    }
    expect(await handlerOf()(batchOf("a1", "a2", "a3"))).toEqual([]);
    expect(ran).toEqual(["a1", "a2", "a3"]);
    expect(new Set(tokens).size).toBe(1);
    expect(b.store.requests).toHaveLength(2);
    await free("customer/a");
  });

  test("of which one fails: it alone comes again, and the next ones run", async () => {
    works.set("a2", fail);
    expect(await handlerOf()(batchOf("a1", "a2", "a3", "b1"))).toEqual(["a2"]);
    expect(failures).toEqual([["a2", broken]]);
    expect(ran.toSorted()).toEqual(["a1", "a2", "a3", "b1"]);
    await free("customer/a", "customer/b");
  });

  test("that another holds come again after one request, and the others run", async () => {
    await b.other.acquire("customer/a", { leaseDurationMs: 60_000 });
    b.store.requests.length = 0;
    expect(await handlerOf()(batchOf("a1", "b1", "a2"))).toEqual(["a1", "a2"]);
    expect(failures.map(([, error]) => error)).toEqual([
      expect.any(LeaseUnavailableError),
      expect.any(LeaseUnavailableError),
    ]);
    expect(ran).toEqual(["b1"]);
    expect(b.store.requests).toHaveLength(3);
  });

  test("wait for another holder if they are told to, and leave the work its reserve", async () => {
    const held = await b.other.acquire("customer/a", { leaseDurationMs: 60_000 });
    const answer = handlerOf({ whenHeld: "wait" })(batchOf("a1"));
    await b.clock.advance(2_000);
    expect(ran).toEqual([]);
    await held.release();
    await b.clock.advance(5_000);
    expect(await answer).toEqual([]);
    const again = handlerOf({ whenHeld: "wait", reserveMs: 50_000 });
    await b.other.acquire("customer/a", { leaseDurationMs: 60_000 });
    const refused = again(batchOf("a2"));
    await b.clock.advance(12_000);
    expect(await refused).toEqual(["a2"]);
  });

  test("count as done with whenHeld: skip", async () => {
    await b.other.acquire("customer/a", { leaseDurationMs: 60_000 });
    expect(await handlerOf({ whenHeld: "skip" })(batchOf("a1", "a2", "b1"))).toEqual([]);
    expect(ran).toEqual(["b1"]);
  });
});

describe("different keys", () => {
  test("run beside each other, as many as concurrency says", async () => {
    let inside = 0;
    let most = 0;
    const ids = Array.from({ length: 26 }, (_, index) => `${String.fromCharCode(97 + index)}1`);
    for (const id of ids) {
      works.set(id, async () => {
        most = Math.max(most, ++inside);
        await new Promise((resolve) => b.clock.schedule(() => resolve(undefined), 100));
        inside -= 1;
      });
    }
    const answer = handlerOf({ concurrency: 4 })(batchOf(...ids));
    await b.clock.advance(5_000);
    expect(await answer).toEqual([]);
    expect(most).toBe(4);
  });

  test("a key that cannot be read fails its record alone, before any request for it", async () => {
    const key = ({ body }: Message) => (body === "x" ? (JSON.parse("{") as string) : `customer/${body}`);
    expect(await handlerOf({ key })(batchOf("x1", "a1"))).toEqual(["x1"]);
    expect(await handlerOf({ key: () => "" })(batchOf("a2"))).toEqual(["a2"]);
    expect(failures.map(([id, error]) => [id, (error as Error).name])).toEqual([
      ["x1", "SyntaxError"],
      ["a2", "InvalidOptionsError"],
    ]);
    expect(ran).toEqual(["a1"]);
  });
});

test.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new Error("told nobody");
    },
  ],
  ["rejects", () => Promise.reject(new Error("told nobody"))],
])("an onFailure that %s fails no record that is done, and hides no error", async (_, onFailure) => {
  const said = vi.spyOn(console, "error").mockReturnValue();
  const uncaught = collectUncaught();
  works.set("a1", fail);
  expect(await handlerOf({ onFailure })(batchOf("a1", "b1"))).toEqual(["a1"]);
  await new Promise(setImmediate);
  expect(uncaught).toEqual([]);
  expect(said.mock.calls.flat()).toEqual(
    expect.arrayContaining([expect.objectContaining({ message: "told nobody" }), broken]),
  );
  said.mockRestore();
});

describe("a lost lease", () => {
  test("fails all records that ran under it, and those behind them do not run", async () => {
    works.set("a2", () => b.clock.freeze(120_000));
    expect(
      await handlerOf({ lockAtMostForMs: 30_000 })(batchOf("a1", "a2", "a3", "b1"), b.context(600_000)),
    ).toEqual(["a1", "a2", "a3"]);
    expect(failures[0]?.[1]).toBeInstanceOf(LeaseLostError);
    expect(ran.toSorted()).toEqual(["a1", "a2", "b1"]);
  });

  test("is seen at the release, too, if an operator has broken it meanwhile", async () => {
    works.set("a1", async ({ lease }) => {
      await adminOf(b.other).forceRelease("customer/a", { token: lease.token });
    });
    expect(await handlerOf({ heartbeat: false })(batchOf("a1"))).toEqual(["a1"]);
  });

  test("aborts the signal, and an operator's request to stop lets the running record count as done", async () => {
    works.set("a1", async (lock) => {
      await adminOf(b.other).requestRevocation("customer/a", { token: lock.lease.token });
      await b.clock.advance(20_000);
      expect(lock.signal.reason).toMatchObject({ reason: "revoked" });
    });
    expect(await handlerOf({ heartbeat: true })(batchOf("a1", "a2"), b.context(600_000))).toEqual(["a2"]);
  });
});

test("the work follows the signal of an outer middy", async () => {
  const outer = new AbortController();
  const seen: unknown[] = [];
  const handler = leasedBatch<Message>(
    { client: b.client, clock: b.clock, key: "k", metrics: false },
    (_record, _context, { signal }) => {
      outer.abort("early");
      seen.push(signal.reason);
    },
  );
  // Nor does it need a context of Lambda's, or metrics.
  await handler(batchOf("a1"), {} as Context, outer);
  expect(seen).toEqual(["early"]);
});

test("a function's time that ends: records that are not begun come again", async () => {
  const context = b.context(10_000);
  works.set("a1", () => b.clock.freeze(9_900));
  expect(await handlerOf({ concurrency: 1 })(batchOf("a1", "a2", "b1"), context)).toEqual(["a2", "b1"]);
  for (const [, error] of failures) expect(error).toBeInstanceOf(InvocationEndingError);
  expect(ran).toEqual(["a1"]);
  await free("customer/a", "customer/b");
});

test.each([60_000, 9_000])(
  "a margin of %d ms leaves the records three quarters of a short time",
  async (timeoutMarginMs) => {
    works.set("a2", () => b.clock.freeze(7_500));
    const answer = handlerOf({ concurrency: 1, timeoutMarginMs })(
      batchOf("a1", "a2", "b1"),
      b.context(10_000),
    );
    expect(await answer).toEqual(["b1"]);
  },
);

test("a batch without Lambda's context is refused by name, before any request", async () => {
  await expect(handlerOf()(batchOf("a1"), null as never)).rejects.toMatchObject({ option: "context" });
  expect([ran, b.store.requests]).toEqual([[], []]);
});

describe("a FIFO queue", () => {
  test("keeps the order of a message group: behind a failure nothing of it runs, and other groups do", async () => {
    works.set("a1", fail);
    expect(await handlerOf()(fifo("x-1", "a1", "b2", "c1", "d2"))).toEqual(["a1", "c1"]);
    expect(ran.toSorted()).toEqual(["a1", "b2", "d2", "x-1"]);
    expect(failures).toEqual([
      ["a1", broken],
      ["c1", broken],
    ]);
  });

  test("two groups that share a key never contend for it with each other", async () => {
    expect(await handlerOf()(fifo("a1", "b1", "a2", "b2"))).toEqual([]);
    expect(ran).toEqual(["a1", "b1", "a2", "b2"]);
  });

  test("groups of a standard queue, which share it fairly, keep no order", async () => {
    works.set("a1", fail);
    const Records = ["a1", "b1"].map((id) => message(id, "tenant"));
    expect(await handlerOf()({ Records })).toEqual(["a1"]);
    expect(ran.toSorted()).toEqual(["a1", "b1"]);
  });
});

describe("a stream", () => {
  const kinesis = (...numbers: string[]) =>
    numbers.map((number) => ({
      messageId: number,
      body: number.slice(0, 1),
      eventID: `shard:${number}`,
      eventSource: "aws:kinesis",
      kinesis: { sequenceNumber: number },
    }));
  const dynamodb = (...numbers: string[]) =>
    kinesis(...numbers).map(({ kinesis: _, ...record }, index) => ({
      ...record,
      eventSource: "aws:dynamodb",
      dynamodb: { SequenceNumber: numbers[index] },
    }));

  test.each([
    ["Kinesis", kinesis],
    ["DynamoDB", dynamodb],
  ])("of %s stops at the first failure, and names it by its sequence number", async (_, records) => {
    works.set("a2", fail);
    expect(await handlerOf()({ Records: records("a1", "b1", "a2", "b2", "c1") })).toEqual(["a2"]);
    expect(ran).toEqual(["a1", "b1", "a2"]);
    expect(failures.map(([id]) => id)).toEqual(["a2", "b2", "c1"]);
  });

  test("that comes by a pipe is named by its event ids", async () => {
    works.set("a2", fail);
    const piped = dynamodb("a1", "a2").concat();
    expect(await handlerOf()(piped)).toEqual(["shard:a2"]);
    const flat = kinesis("a1", "a2").map(({ kinesis: { sequenceNumber }, ...record }) => ({
      ...record,
      sequenceNumber,
    }));
    expect(await handlerOf()(flat)).toEqual(["shard:a2"]);
    expect(await handlerOf()([message("a2")])).toEqual(["a2"]);
  });

  test("a lease is not kept while another key is waited for", async () => {
    const held: number[] = [];
    works.set("b1", () => held.push(b.client.held().length));
    await handlerOf()({ Records: kinesis("a1", "b1", "a2") });
    expect(held).toEqual([1]);
    expect(b.store.requests).toHaveLength(6);
  });

  test("of Kafka stops a partition at its first failure, and names it by partition and offset", async () => {
    const of = (partition: number, ...ids: string[]) =>
      ids.map((messageId, offset) => ({
        topic: "orders",
        partition,
        offset: offset + 5,
        messageId,
        body: messageId,
      }));
    const records = { "orders-0": of(0, "a1", "a2", "a3"), "orders-1": of(1, "b1", "b2") };
    works.set("a2", fail);
    expect(await handlerOf()({ eventSource: "aws:kafka", records })).toEqual([
      { partition: "orders-0", offset: 6 },
    ]);
    expect(ran.toSorted()).toEqual(["a1", "a2", "b1", "b2"]);
    await handlerOf({ once: true })({ records: { "orders-1": of(1, "b1", "b2") } });
    expect(await b.other.doneSlot("customer/b2/orders-1-6")).toBe("orders-1-6");
  });
});

describe("once", () => {
  test("a record that is delivered again after its success does not run, and counts as done", async () => {
    const handler = handlerOf({ once: true });
    expect(await handler(batchOf("a1", "a2"))).toEqual([]);
    expect(await handler(batchOf("a2", "a1", "a3"))).toEqual([]);
    expect(ran).toEqual(["a1", "a2", "a3"]);
    expect(await b.other.doneSlot("customer/a/a1")).toBe("a1");
  });

  test("costs 2 requests more a record; without a key, 2 for each", async () => {
    await handlerOf({ once: true })(batchOf("a1", "a2"));
    expect(b.store.requests).toHaveLength(6);
    const handler = leasedBatch<Message>(
      { client: b.client, clock: b.clock, once: true },
      ({ messageId }, _context, { lease }) => {
        ran.push(messageId);
        expect(lease.key).toBe(messageId);
      },
    );
    b.store.requests.length = 0;
    expect(await handler(batchOf("b1", "b1"), b.context())).toMatchObject({
      batchItemFailures: [{ itemIdentifier: "b1" }],
    });
    expect(ran).toEqual(["a1", "a2", "b1"]);
  });

  test("stands beside every other option, and a record's own lock has its times", async () => {
    const events: string[] = [];
    const handler = handlerOf({
      ...{ client: undefined as never, store: b.store, once: true, metrics: () => undefined },
      ...{ whenHeld: "wait", order: fair(), reserveMs: 1_000, keyDimension: true },
      ...{ lockAtMostForMs: 3_000, heartbeat: 1_000, onEvent: ({ type }) => events.push(type) },
    });
    works.set("a1", async () => {
      await b.clock.advance(10_000);
      const { acquiredAt = 0, leaseDurationMs } = (await b.other.inspect("customer/a/a1")) ?? {};
      expect([leaseDurationMs, b.clock.now() - acquiredAt]).toEqual([3_000, 10_000]);
    });
    expect(await handler(batchOf("a1"))).toEqual([]);
    expect(failures).toEqual([]);
    expect(new Set(events)).toEqual(new Set(["acquired", "renewed", "released"]));
  });

  test("the work wakes from a freeze with an aborted signal, also where the key's lease alone has ended", async () => {
    const handler = handlerOf({ once: true, lockAtMostForMs: 30_000, heartbeat: false });
    // The lease of the second record begins later than that of its key.
    works.set("a1", () => b.clock.freeze(5_000));
    let reason: unknown;
    works.set("a2", (lock) => {
      b.clock.freeze(28_000);
      reason = lock.signal.reason;
    });
    expect(await handler(batchOf("a1", "a2"), b.context(600_000))).toEqual(["a1", "a2"]);
    expect(reason).toBeInstanceOf(LeaseLostError);
  });

  test("the work has the key's lease, and a signal that aborts with either", async () => {
    const seen: unknown[] = [];
    works.set("a1", async (lock) => {
      await adminOf(b.other).forceRelease("customer/a", { token: lock.lease.token });
      await b.clock.advance(20_000);
      seen.push(lock.lease.key, lock.signal.aborted);
    });
    const handler = handlerOf({ once: true, heartbeat: true });
    expect(await handler(batchOf("a1"), b.context(600_000))).toEqual(["a1"]);
    expect(seen).toEqual(["customer/a", true]);
    expect(await b.other.doneSlot("customer/a/a1")).toBeUndefined();
  });
});

describe("bad input", () => {
  test.each([
    ["a request", { requestContext: { http: {} } }],
    ["a topic", { Records: [{ EventSource: "aws:sns", Sns: {} }] }],
    ["nothing", undefined],
    ["records that are none", { Records: [null] }],
    ["no records", { records: null }],
    ["a message without its id", { Records: [{ eventSource: "aws:sqs" }] }],
    ["a record of a stream without its id", { Records: [{ kinesis: { sequenceNumber: "1" } }] }],
    ["a record of a stream without its number", { Records: [{ eventID: "shard:1", kinesis: {} }] }],
    ["a record of Kafka without its topic", { records: { t: [{ partition: 0, offset: 0 }] } }],
    ["a record of Kafka without its partition", { records: { t: [{ topic: "t", offset: 0 }] } }],
    ["a record of Kafka without its offset", { records: { t: [{ topic: "t", partition: 0 }] } }],
  ])("%s is refused before any request: no single record of it could come again", async (_, event) => {
    await expect(handlerOf()(event)).rejects.toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
    expect(b.store.requests).toEqual([]);
  });

  test.each<[string, object, RegExp]>([
    ["no key", {}, /key/],
    ["a job", { key: "k", job: "j" }, /job/],
    ["concurrency 0", { key: "k", concurrency: 0 }, /concurrency/],
    ["once by a function", { key: "k", once: () => "s" }, /once/],
    ["replace", { key: "k", whenHeld: "replace" }, /whenHeld/],
    ["a queue's order without a wait", { key: "k", order: { begin: () => undefined } }, /order/],
  ])("%s is refused when the handler is made", (_, options, refusal) => {
    expect(() => leasedBatch<Message>({ client: b.client, ...options }, () => undefined)).toThrow(refusal);
  });

  test("work that is no function is refused when the handler is made", () => {
    expect(() => leasedBatch({ client: b.client, key: "k" }, undefined as never)).toThrow(/work/);
  });

  test("an empty batch is done, and the key may come from the environment", async () => {
    vi.stubEnv("LEASEHOLD_KEY", "all");
    const handler = leasedBatch<Message>(
      { client: b.client, clock: b.clock },
      (_record, _context, { lease }) => {
        ran.push(lease.key);
      },
    );
    expect(await handler({ Records: [] }, b.context())).toEqual({ batchItemFailures: [] });
    expect(await handler(batchOf("a1", "b1"), b.context())).toEqual({ batchItemFailures: [] });
    expect(ran).toEqual(["all", "all"]);
  });

  test("a failure is told on the standard error where nobody listens", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const handler = leasedBatch<Message>({ client: b.client, clock: b.clock, key: "k" }, fail);
    await handler(batchOf("a1"), b.context());
    expect(said).toHaveBeenCalledExactlyOnceWith("record a1 failed and comes again:", broken);
  });
});
