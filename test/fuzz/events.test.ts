// Records of the lease table's stream, as the functions behind it get them: of any program, with any attributes.

import type { DynamoDBStreamEvent } from "aws-lambda";
import fc from "fast-check";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { reportExpired } from "../../functions/leases/expired.ts";
import { recordHistory } from "../../packages/cdk/history/recording.ts";
import { wakeWaiters } from "../../packages/cdk/wake/waking.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText } from "./hostile.ts";

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});
afterEach(() => vi.restoreAllMocks());

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
