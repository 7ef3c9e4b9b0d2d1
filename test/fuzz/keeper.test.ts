// Inputs of keepers and events of ended executions: any JSON. An input that proves no lease changes nothing, and every execution ends
// with an error of the keeper's own, or as planned.

import type { LeaseHandle } from "@leasehold/client";
import fc from "fast-check";
import { expect } from "vitest";
import { KeptWork, key, lookMs } from "../support/kept-work.ts";
import { fuzz } from "./fuzz.ts";
import { json, someEvent } from "./hostile.ts";

const named = [
  "InvalidOptionsError",
  "LeaseNotProvenError",
  "KeeperNotPermittedError",
  "LeaseLostError",
  "WorkNotStoppedError",
];

const number = fc.oneof(
  fc.nat({ max: 20_000 }),
  fc.constantFrom(
    0,
    -1,
    0.5,
    1e308,
    2 ** 53,
    Number.MAX_SAFE_INTEGER,
    1_767_225_700_000,
    8_640_000_000_000_000,
  ),
);
/** What a member of the lease's handle becomes. */
const members: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  key: fc.oneof(fc.constantFrom("free", ""), json),
  token: fc.oneof(fc.constant("made up"), json),
  fencingToken: fc.oneof(number, json),
  version: fc.oneof(number, json),
  leaseDurationMs: fc.oneof(number, json),
  expiresAt: fc.oneof(number, json),
  tableName: fc.oneof(fc.constant("other"), json),
  owner: json,
  acquiredAt: json,
};
const changes = fc
  .shuffledSubarray(Object.entries(members), { maxLength: 2 })
  .chain((some) => fc.record(Object.fromEntries(some)));

const input = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record(
      {
        lease: fc.record({ changes }),
        guarded: fc.oneof(fc.constantFrom("WORK", "OTHER", "nobody"), json),
        until: fc.oneof(number, json),
        taskToken: fc.oneof(fc.constant("task"), json),
        generation: fc.oneof(number, json),
      },
      { requiredKeys: ["lease"] },
    ),
  },
  { weight: 1, arbitrary: someEvent({ lease: json, guarded: json, until: number, taskToken: json }) },
);

type Given = Record<string, unknown> & { readonly lease?: { readonly changes?: Partial<LeaseHandle> } };

/** One lock held by work that runs, and other work beside it. */
async function begun() {
  const kept = new KeptWork();
  kept.deliver = () => undefined;
  const [work, other] = [kept.startWork(), kept.startWork()];
  const lease = await kept.client.acquire(key, { owner: `workflow:${work}`, leaseDurationMs: 9_000 });
  const arns: Readonly<Record<string, string>> = { WORK: work, OTHER: other };
  return { kept, work, other, lease, arns };
}

fuzz(
  "a keeper with any input proves its lease, or touches nothing and ends with an error of its own",
  input,
  async (given) => {
    const { kept, work, other, lease, arns } = await begun();
    const { lease: wanted, guarded, ...rest } = Object(given) as Given;
    const handle = { ...lease.toJSON(), ...wanted?.changes };
    const isOurs = wanted?.changes !== undefined;
    const made = isOurs
      ? {
          ...rest,
          lease: handle,
          ...(guarded === undefined ? {} : { guarded: arns[String(guarded)] ?? guarded }),
        }
      : given;
    const before = kept.steps.lease(key);
    const keeper = kept.startKeeper(JSON.parse(JSON.stringify(made)));
    await kept.clock.advance(2 * lookMs);
    const { status, error } = kept.describe(keeper);
    if (status === "FAILED") expect(named, JSON.stringify(kept.describe(keeper))).toContain(error);
    if (error === "InvalidOptionsError") expect(kept.steps.calls).toEqual([]);
    expect(kept.status(other)).toBe("RUNNING");
    const isProven =
      isOurs &&
      handle.token === lease.token &&
      handle.fencingToken === lease.fencingToken &&
      handle.key === key;
    if (isProven) {
      // It rejects where the item cannot be read.
      const record = await kept.client.inspect(key);
      if (record !== undefined) expect(record.expiresAt).toBeLessThan(kept.clock.now() + 400 * 86_400_000);
      return error === "InvalidOptionsError" ? undefined : [];
    }
    expect(kept.status(work)).toBe("RUNNING");
    expect(kept.steps.lease(key)).toEqual(before);
    return undefined;
  },
  { few: 25, many: 1_500, accepted: { share: 0.1, options: [] } },
);

fuzz(
  "any event of an execution that has ended lets go of no lease but that execution's",
  fc.oneof(
    {
      weight: 3,
      arbitrary: someEvent(
        {
          key: fc.constantFrom(key, "free"),
          detail: someEvent(
            {
              executionArn: fc.constantFrom("OTHER", "WORK"),
              status: fc.constantFrom("FAILED", "ABORTED"),
              input: fc.constantFrom("{}", '{"key":"import"}', "[", "7"),
            },
            ["executionArn", "status"],
          ),
        },
        ["key", "detail"],
      ),
    },
    json,
  ),
  async (given) => {
    const { kept, work, arns } = await begun();
    const event = Object(JSON.parse(JSON.stringify(given ?? null))) as {
      detail?: { executionArn?: unknown };
    };
    const detail = Object(event.detail) as { executionArn?: unknown; input?: unknown };
    const arn = arns[String(detail.executionArn)];
    if (arn !== undefined) detail.executionArn = arn;
    const before = kept.steps.lease(key);
    const ended = kept.tellEnded(event);
    await kept.clock.advance(20_000);
    // An execution's own input is always JSON: Step Functions takes no other.
    const { status, error } = kept.describe(ended);
    if (isJsonText(detail.input)) expect([status, error]).toEqual(["SUCCEEDED", undefined]);
    expect(kept.status(work)).toBe("RUNNING");
    // The work runs: whatever the event says, its lease stays.
    expect(kept.steps.lease(key)).toEqual(before);
    return kept.steps.calls.includes("sfn:describeExecution") ? [] : undefined;
  },
  { few: 50, many: 3_000, accepted: { share: 0.02, options: [] } },
);

function isJsonText(text: unknown): boolean {
  if (typeof text !== "string") return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Ignored: it is what is asked.
    return false;
  }
}
