import {
  CallbackTimeoutException,
  InvalidParameterValueException,
  ResourceNotFoundException,
} from "@aws-sdk/client-lambda";
import { InvalidToken, TaskDoesNotExist, TaskTimedOut } from "@aws-sdk/client-sfn";
import { marshall } from "@aws-sdk/util-dynamodb";
import { acquire, type Grant, release } from "@leasehold/client/internal";
import type { LeaseRecord } from "@leasehold/client/record";
import { leaseItemKey } from "@leasehold/client/schema";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import type { DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type ExpiryReport, leaseIn, reportExpired } from "../../functions/leases/expired.ts";
import { completeCallback, sendWakeUp } from "../../packages/cdk/wake/handler.ts";
import { type Waking, wakeWaiters } from "../../packages/cdk/wake/waking.ts";

const store = new MemoryLeaseStore();

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});

type Image = NonNullable<DynamoDBRecord["dynamodb"]>["OldImage"];

/** A lease item in the form in which the stream shows it, as the client's own expressions write it. */
function held(key: string, owner = "A"): Image {
  const grant: Grant = {
    token: `token-of-${owner}-${key}`,
    version: 1,
    owner,
    acquiredAt: 1_000,
    expiresAt: 1_500,
    leaseDurationMs: 500,
    retentionMs: 0,
    reentrant: false,
    data: '{"secret":"payload"}',
    slot: undefined,
  };
  return imageOf(store.updateNow(acquire({ key }, grant).request()).item);
}

function imageOf(item: unknown): Image {
  return marshall(item) as Image;
}

function tombstone(key: string, owner = "A"): Image {
  const token = `token-of-${owner}-${key}`;
  const fencingToken = Number(store.peek(leaseItemKey(key))?.fence);
  const shown = { token, fencingToken };
  const ending = { shown, now: 2_000, retentionMs: 0, slot: undefined, cooldown: undefined };
  store.updateNow(release({ key }, ending).request());
  return imageOf(store.peek(leaseItemKey(key)));
}

let sequence = 0;
function record(eventName: "MODIFY" | "REMOVE", OldImage: Image, NewImage?: Image): DynamoDBRecord {
  const SequenceNumber = String(++sequence);
  return {
    eventName,
    dynamodb: { OldImage, SequenceNumber, ...(NewImage === undefined ? {} : { NewImage }) },
  };
}

let keys = 0;
const keyOf = (): string => `key-${++keys}`;

const timeToLive = { type: "Service", principalId: "dynamodb.amazonaws.com" };

/** A lease, or what is given in its place, that ttl has removed. */
function expired(image: Image = held(keyOf()), userIdentity: object = timeToLive): DynamoDBRecord {
  return { ...record("REMOVE", image), userIdentity };
}

function event(...Records: DynamoDBRecord[]): DynamoDBStreamEvent {
  return { Records };
}

describe("the reporting of expired leases", () => {
  let put: unknown[][];
  let lines: string[];
  let report: ExpiryReport;

  beforeEach(() => {
    put = [];
    lines = [];
    report = {
      tableName: "leases",
      putEvents: async (entries) => {
        put.push(entries.map(({ Detail }) => JSON.parse(Detail ?? "")));
        return entries.map(() => ({ EventId: "id" }));
      },
      writeLine: (line) => lines.push(line),
      now: () => 0,
    };
  });

  test("a lease that ttl removed while it was held becomes an event without token and payload, and a metric", async () => {
    const key = keyOf();
    const answer = await reportExpired(report, event(expired(held(key))));
    expect(answer).toEqual({ batchItemFailures: [] });
    expect(put).toEqual([
      [{ tableName: "leases", key, owner: "A", fencingToken: 1_001, acquiredAt: 1_000, expiresAt: 1_500 }],
    ]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ LeaseExpired: 1, Table: "leases" }]);
  });

  test("tombstones, closed and paused locks, other items and other people's deletions are no expired leases", async () => {
    const key = keyOf();
    held(key);
    const tombstoneAlone = tombstone(key);
    const closed = { ...held(keyOf()), token: { S: "closed:token" } };
    const lock = held(keyOf());
    const paused = { ...lock, pauseToken: { S: String(lock?.token?.S) } };
    const waiter = { ...held(keyOf()), sk: { S: "waiter#1" } };
    const others = [
      ...[tombstoneAlone, closed, paused, waiter].map((image) => expired(image)),
      record("REMOVE", held(keyOf())),
      expired(held(keyOf()), { ...timeToLive, principalId: "somebody" }),
      expired(held(keyOf()), { ...timeToLive, type: "User" }),
      { ...record("MODIFY", held(keyOf())), userIdentity: timeToLive },
      { ...record("REMOVE", undefined), userIdentity: timeToLive },
    ];
    await reportExpired(report, event(...others));
    expect(put).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("a payload that cannot be read, and an item of another program, do not stop the stream", async () => {
    const odd = { ...held(keyOf()), data: { S: "{" } };
    const foreign = { ...held(keyOf()), version: { BOOL: true } };
    const answer = await reportExpired(report, event(expired(odd), expired(foreign), expired()));
    expect(put.flat()).toHaveLength(2);
    expect(answer.batchItemFailures).toEqual([]);
  });

  test("eleven leases take two requests", async () => {
    await reportExpired(report, event(...Array.from({ length: 11 }, () => expired())));
    expect(put.map((entries) => entries.length)).toEqual([10, 1]);
  });

  test("from the first event that is not accepted on, records come again, and only those before are counted", async () => {
    const records = Array.from({ length: 4 }, () => expired());
    const refusing: ExpiryReport = {
      ...report,
      putEvents: async (entries) =>
        entries.map((_, index) => (index === 2 ? { ErrorCode: "ThrottlingException" } : { EventId: "id" })),
    };
    const answer = await reportExpired(refusing, event(...records));
    expect(answer.batchItemFailures).toEqual([{ itemIdentifier: records[2]?.dynamodb?.SequenceNumber }]);
    expect(lines.map((line) => JSON.parse(line).LeaseExpired)).toEqual([2]);
  });

  test("a service that does not answer has the whole batch come again", async () => {
    const first = expired();
    const failing: ExpiryReport = { ...report, putEvents: () => Promise.reject(new Error("no answer")) };
    const answer = await reportExpired(failing, event(first));
    expect(answer.batchItemFailures).toEqual([{ itemIdentifier: first.dynamodb?.SequenceNumber }]);
    expect(lines).toEqual([]);
  });
});

type Waiter = { readonly taskToken: string };

describe("the waking of parked workflows", () => {
  let parked: Map<string, Waiter[]>;
  let woken: string[];
  let holders: Map<string, LeaseRecord>;
  let gone: Set<string>;
  let waking: Waking<Waiter>;

  beforeEach(() => {
    parked = new Map();
    woken = [];
    holders = new Map();
    gone = new Set();
    waking = {
      waiters: {
        oldest: async (key, after) => {
          const waiters = parked.get(key) ?? [];
          return waiters[after === undefined ? 0 : waiters.indexOf(after) + 1];
        },
        isHeld: async (key) => holders.has(key),
        remove: async ({ taskToken }) => {
          for (const [key, waiters] of parked) {
            parked.set(
              key,
              waiters.filter((waiter) => waiter.taskToken !== taskToken),
            );
          }
        },
      },
      wake: async ({ taskToken }) => {
        if (gone.has(taskToken)) return false;
        woken.push(taskToken);
        gone.add(taskToken);
        return true;
      },
      remainingMs: () => 60_000,
    };
  });

  function park(key: string, ...taskTokens: string[]): void {
    parked.set(
      key,
      taskTokens.map((taskToken) => ({ taskToken })),
    );
  }

  function released(key: string): DynamoDBRecord {
    return record("MODIFY", held(key), tombstone(key));
  }

  test("a release wakes the one that has waited longest, and nobody else", async () => {
    const key = keyOf();
    park(key, "first", "second");
    expect(await wakeWaiters(waking, event(released(key)))).toEqual({ batchItemFailures: [] });
    expect(woken).toEqual(["first"]);
    expect(parked.get(key)).toEqual([{ taskToken: "second" }]);
  });

  test("a lease that ttl removed wakes somebody too", async () => {
    const key = keyOf();
    park(key, "first");
    await wakeWaiters(waking, event(record("REMOVE", held(key))));
    expect(woken).toEqual(["first"]);
  });

  test("waiters that are gone are taken off, and the next one is woken", async () => {
    const key = keyOf();
    park(key, "timed out", "aborted", "alive", "last");
    gone = new Set(["timed out", "aborted"]);
    await wakeWaiters(waking, event(released(key)));
    expect(woken).toEqual(["alive"]);
    expect(parked.get(key)).toEqual([{ taskToken: "last" }]);
  });

  const wakesOwn: Waking<Waiter>["wake"] = async (waiter, key) =>
    waiter.taskToken.startsWith("own") ? await waking.wake(waiter, key) : "denied";

  test("a waiter of another wakeup, or of a removed machine, keeps its place, and the next one is woken; nothing has failed", async () => {
    const key = keyOf();
    park(key, "of another team", "of a removed machine", "own and gone", "own", "own second");
    gone = new Set(["own and gone"]);
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const denying: Waking<Waiter> = { ...waking, wake: wakesOwn };
    expect(await wakeWaiters(denying, event(released(key)))).toEqual({ batchItemFailures: [] });
    expect(woken).toEqual(["own"]);
    expect(parked.get(key)?.map(({ taskToken }) => taskToken)).toEqual([
      "of another team",
      "of a removed machine",
      "own second",
    ]);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  test("of a long line of another wakeup, one release tries ten, and nothing has failed", async () => {
    const key = keyOf();
    park(key, ...Array.from({ length: 500 }, (_, index) => `of another team ${index}`), "own");
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const denying: Waking<Waiter> = { ...waking, wake: wakesOwn };
    expect(await wakeWaiters(denying, event(released(key)))).toEqual({ batchItemFailures: [] });
    expect(woken).toEqual([]);
    expect(parked.get(key)).toHaveLength(501);
    expect(warn).toHaveBeenCalledTimes(10);
  });

  test("several records about one key wake one waiter", async () => {
    const key = keyOf();
    park(key, "first", "second");
    await wakeWaiters(waking, event(released(key), released(key)));
    expect(woken).toEqual(["first"]);
  });

  test("renewals, takeovers, closed locks and other items wake nobody", async () => {
    const key = keyOf();
    park(key, "first");
    const before = held(key);
    const waiter = { ...before, sk: { S: "waiter#1" } };
    await wakeWaiters(
      waking,
      event(
        record("MODIFY", before, { ...before, version: { N: "2" } }),
        record("MODIFY", before, { ...before, token: { S: "another" } }),
        record("MODIFY", before, { ...before, token: { S: "closed:token" } }),
        record("MODIFY", tombstone(key), before),
        record("REMOVE", waiter),
      ),
    );
    expect(woken).toEqual([]);
  });

  test("a record that comes again wakes nobody while the one that was woken holds the lock", async () => {
    const key = keyOf();
    park(key, "first", "second");
    const again = released(key);
    await wakeWaiters(waking, event(again));
    holders.set(key, leaseIn(held(key, "first")) as LeaseRecord);
    await wakeWaiters(waking, event(again));
    expect(woken).toEqual(["first"]);
    expect(parked.get(key)).toHaveLength(1);
  });

  test("a function that died after the wake-up wakes no one twice when the record comes again", async () => {
    const key = keyOf();
    park(key, "first");
    const again = released(key);
    const dying: Waking<Waiter> = {
      ...waking,
      waiters: { ...waking.waiters, remove: () => Promise.reject(new Error("killed")) },
    };
    const answer = await wakeWaiters(dying, event(again));
    expect(answer.batchItemFailures).toEqual([{ itemIdentifier: again.dynamodb?.SequenceNumber }]);
    await wakeWaiters(waking, event(again));
    expect(woken).toEqual(["first"]);
    expect(parked.get(key)).toEqual([]);
  });

  test("one key's failure keeps no other key's waiter asleep, and only its record comes again", async () => {
    const [bad, good] = [keyOf(), keyOf()];
    park(bad, "unlucky");
    park(good, "lucky");
    const failing: Waking<Waiter> = {
      ...waking,
      wake: (taskToken, key) =>
        key === bad ? Promise.reject(new Error("throttled")) : waking.wake(taskToken, key),
    };
    const [first, second] = [released(bad), released(good)];
    const answer = await wakeWaiters(failing, event(first, second));
    expect(woken).toEqual(["lucky"]);
    expect(answer.batchItemFailures).toEqual([{ itemIdentifier: first.dynamodb?.SequenceNumber }]);
    expect(parked.get(bad)).toHaveLength(1);
  });

  test("a function that runs out of time asks for the record again", async () => {
    const key = keyOf();
    park(key, "first");
    const answer = await wakeWaiters({ ...waking, remainingMs: () => 1_000 }, event(released(key)));
    expect(answer.batchItemFailures).toHaveLength(1);
    expect(woken).toEqual([]);
  });
});

describe.each([
  [
    "a workflow",
    sendWakeUp,
    [TaskDoesNotExist, TaskTimedOut, InvalidToken].map(
      (Gone) => new Gone({ message: "gone", $metadata: {} }),
    ),
  ],
  [
    "a durable function",
    completeCallback,
    [
      new CallbackTimeoutException({ message: "gone", $metadata: {} }),
      new InvalidParameterValueException({ message: "gone", $metadata: {} }),
      new ResourceNotFoundException({ message: "gone", Message: "gone", $metadata: {} }),
    ],
  ],
])("the wake-up of %s", (_, wakeUp, gone) => {
  const refused = (error: Error) => wakeUp({ send: () => Promise.reject(error) }, "token", "key");

  test("knows a waiter that is gone, and one of another wakeup, which a denied permission tells", async () => {
    for (const error of gone) expect(await refused(error), error.name).toBe(false);
    const denied = Object.assign(new Error("not authorized"), { name: "AccessDeniedException" });
    expect(await refused(denied)).toBe("denied");
  });

  test("fails for any other error of the service, for the waiter may be alive", async () => {
    const throttled = new Error("throttled");
    await expect(refused(throttled)).rejects.toBe(throttled);
  });
});

test("the callback of a durable function is completed with the key under its id, and the waiter is awake", async () => {
  const sent: unknown[] = [];
  const functions = { send: async (command: { input: unknown }) => void sent.push(command.input) };
  expect(await completeCallback(functions as never, "Y2FsbGJhY2s=", "orders/7")).toBe(true);
  expect(sent).toEqual([{ CallbackId: "Y2FsbGJhY2s=", Result: Buffer.from('{"key":"orders/7"}') }]);
});
