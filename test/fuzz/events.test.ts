// Events that reach Lambda functions: from callers of any language, from EventBridge, from the table's stream. They are JSON, and
// nothing else is known of them.

import { LeaseClient } from "@leasehold/client";
import type { DynamoDBStreamEvent } from "aws-lambda";
import fc from "fast-check";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { admit } from "../../functions/admit-tickets/handler.ts";
import { reportExpired } from "../../functions/leases/expired.ts";
import { acquireLease, releaseLease, renewLease } from "../../functions/leases/lease-service.ts";
import { forLambda } from "../../functions/support/answers.ts";
import { KeyNotAllowedError } from "../../functions/support/input.ts";
import { recordHistory } from "../../packages/cdk/history/recording.ts";
import { wakeWaiters } from "../../packages/cdk/wake/waking.ts";
import { Bench, isNamed } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { someEvent as event, hostileText, json } from "./hostile.ts";

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});
afterEach(() => vi.restoreAllMocks());

/** What a caller in another language gets has a name and a message, with the fields as a line of JSON. */
function isTold(error: unknown): boolean {
  const shown = forLambda(error) as Error;
  const [, fields = ""] = shown.message.split("\n");
  return (isNamed(error) || error instanceof KeyNotAllowedError) && typeof JSON.parse(fields) === "object";
}

const acquisition = {
  key: fc.constantFrom("jobs/a", "jobs/", "other"),
  owner: fc.constantFrom("a", "b"),
  leaseDurationMs: fc.integer({ min: 1, max: 60_000 }),
  waitMs: fc.constantFrom(0, 100),
  data: json,
  slot: fc.constantFrom("2025-11-21T10:00:00.000Z", "7"),
  lockAtLeastForMs: fc.constantFrom(0, 10),
  reentrant: fc.boolean(),
};

fuzz(
  "a lease function answers any event with a lease, or with an error that any language can read",
  fc.record({
    key: fc.constantFrom("jobs/a", "jobs/b"),
    event: event(acquisition, ["key"]),
    ending: event({ lease: json, completed: fc.boolean() }),
  }),
  async ({ key, event: given, ending }) => {
    const bench = new Bench();
    const forgetful = (): LeaseClient => new LeaseClient({ store: bench.store, clock: bench.clock });
    const service = { leases: bench.client, forgetful, keyPrefix: "jobs/" };
    const handle = await bench.check(() => acquireLease(service, given, 30_000), isTold);
    const lease = handle ?? (await acquireLease(service, { key }, 30_000));
    for (const call of [renewLease, releaseLease]) {
      await call(service, ending).catch((error: unknown) => expect(isTold(error)).toBe(true));
    }
    // The lease of another event is there still: nothing that was made up has ended it.
    const kept = lease as { readonly key: string; readonly token: string; readonly leaseDurationMs: number };
    const record = await bench.client.inspect(kept.key);
    expect(record?.token).toBe(kept.token);
    await releaseLease(service, { lease: JSON.parse(JSON.stringify(lease)) });
    await bench.release(undefined);
    return handle === undefined ? undefined : Object.keys(Object(given));
  },
  { few: 150, many: 10_000, accepted: { share: 0.1, options: Object.keys(acquisition) } },
);

const ticket = fc.constantFrom("a", "b", "c");

/** An event of some of a department's actions, with what they take. */
function ticketEvent(
  actions: readonly string[],
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  needed: readonly string[],
): fc.Arbitrary<unknown> {
  const department = fc.constantFrom("loans", "__proto__", "constructor");
  const all = { action: fc.constantFrom(...actions), department, ...fields };
  return event(all, ["action", "department", ...needed]);
}

fuzz(
  "the admission of tickets answers any event with a standing, or with a named error before any request",
  fc.array(
    fc.oneof(
      ticketEvent(["enter"], { ticket, appointment: fc.boolean() }, ["ticket"]),
      ticketEvent(["heartbeat", "leave"], { ticket }, ["ticket"]),
      ticketEvent(["next"], { ticket, agent: fc.nat(3) }, ["agent"]),
      ticketEvent(["look"], {}, []),
      json,
    ),
    { minLength: 1, maxLength: 5 },
  ),
  async (events) => {
    const bench = new Bench();
    const rules = { mostWaiting: 2, limits: new Map(), agents: new Map([["loans", 2]]), silenceMs: 60_000 };
    const { tableName } = bench.store;
    const answered: string[] = [];
    for (const given of events) {
      const before = bench.store.calls.length;
      await admit({ leases: bench.client, tableName, rules, now: () => bench.clock.now() }, given).then(
        () => answered.push(String(Object(given).action)),
        (error: unknown) => {
          expect(isTold(error)).toBe(true);
          expect(bench.store.calls.length).toBe(before);
        },
      );
    }
    return answered.length > 0 ? answered : undefined;
  },
  {
    few: 150,
    many: 10_000,
    accepted: { share: 0.2, options: ["enter", "heartbeat", "leave", "next", "look"] },
  },
);

/** An attribute as a stream shows it: mostly one that leases have. */
const attribute = fc.oneof(
  fc
    .constantFrom(
      "lease",
      "k",
      "t",
      "closed:t",
      "",
      "1",
      "a 5",
      "released 1767225600000",
      "broken 1e300",
      "released soon",
    )
    .map((S) => ({ S })),
  fc
    .oneof(fc.nat().map(String), fc.constantFrom("1767225600000", "-1", "1e126", "0.5", "9".repeat(38)))
    .map((N) => ({ N })),
  hostileText.map((S) => ({ S })),
  fc.constantFrom({ NULL: true }, { BOOL: false }, { L: [] }, { M: {} }, { SS: ["a"] }, { B: "AA==" }),
);
const names =
  "token version fence owner acquiredAt expiresAt leaseDurationMs reentrant data revocation releasedToken brokenToken pauseToken lastOwner lastAcquiredAt lastEnd doneSlot taskToken callbackId ttl __proto__".split(
    " ",
  );
const [text, time] = [{ S: "t" }, { N: "1767225600000" }];
/** What a lease that is held has. */
const held = {
  ...{ token: text, owner: text, version: { N: "1" }, fence: { N: "7" }, leaseDurationMs: { N: "1000" } },
  ...{ acquiredAt: time, expiresAt: time },
};
/** What the release of that one leaves. */
const ended = {
  ...{ fence: { N: "7" }, releasedToken: text, lastOwner: text, lastAcquiredAt: time },
  lastEnd: { S: "released 1767225600500" },
};
const image = fc.option(
  fc
    .tuple(
      fc.constantFrom("lease", "lease", "semaphore", "other"),
      fc.constantFrom(held, ended, {}),
      fc.oneof(
        fc.array(fc.tuple(fc.constantFrom(...names), attribute), { maxLength: 2 }),
        fc.array(fc.tuple(fc.constantFrom(...names), attribute), { maxLength: 22 }),
      ),
    )
    .map(([sk, begun, attributes]) => ({
      ...{ pk: { S: "k" }, sk: { S: sk } },
      ...begun,
      ...Object.fromEntries(attributes),
    })),
  { nil: undefined },
);
const record = fc.record({
  eventID: fc.string(),
  eventName: fc.constantFrom("INSERT", "MODIFY", "REMOVE", "UNKNOWN_TO_SDK_VERSION"),
  userIdentity: fc.option(fc.constantFrom({ type: "Service", principalId: "dynamodb.amazonaws.com" }, {}), {
    nil: undefined,
  }),
  dynamodb: fc.record({
    SequenceNumber: fc.nat().map(String),
    ApproximateCreationDateTime: fc.option(fc.constantFrom(0, 1_767_225_600.5, 4_102_444_800), {
      nil: undefined,
    }),
    OldImage: image,
    NewImage: image,
  }),
});

fuzz(
  "no record of the stream stops the functions behind it, whatever program has written its item",
  fc.array(record, { maxLength: 5 }),
  async (records) => {
    const stream = JSON.parse(JSON.stringify({ Records: records })) as DynamoDBStreamEvent;
    const recorded: unknown[] = [];
    const reported: unknown[] = [];
    const woken: unknown[] = [];
    const answers = [
      await recordHistory({ put: async (item) => void recorded.push(item), retentionMs: 1_000 }, stream),
      await reportExpired(
        {
          tableName: "leases",
          putEvents: async (entries) => {
            reported.push(...entries);
            return entries.map(() => ({ EventId: "e" }));
          },
          writeLine: (line) => void JSON.parse(line),
          now: () => 0,
        },
        stream,
      ),
      await wakeWaiters(
        {
          waiters: {
            oldest: async (key) => void woken.push(key),
            remove: async () => undefined,
            isHeld: async () => false,
          },
          wake: async () => true,
          remainingMs: () => 60_000,
        },
        stream,
      ),
    ];
    for (const { batchItemFailures } of answers) expect(batchItemFailures).toEqual([]);
    expect(JSON.stringify(recorded)).not.toContain('"token"');
    const acted = Object.entries({ recorded, reported, woken }).filter(([, did]) => did.length > 0);
    return acted.length > 0 ? acted.map(([name]) => name) : undefined;
  },
  { few: 300, many: 30_000, accepted: { share: 0.05, options: ["recorded", "reported", "woken"] } },
);
