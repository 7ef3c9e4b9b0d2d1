// @module-tag long
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Entry, HoldTerms } from "../torture/history.ts";
import { hasGo, judgeByPorcupine, type SecondOpinion } from "../torture/porcupine.ts";

let ids = 0;

/** A hold of the lock `k`, with its release where that is answered with a yes. */
function held(
  since: number,
  at: number,
  fencingToken: number,
  released?: readonly [number, number],
): Entry[] {
  ids += 1;
  const terms: HoldTerms = {
    ...{ primitive: "lock", key: "k", kind: "exclusive", fencingToken, since },
    ...{ permits: 1, attempt: 0 },
  };
  const hold: Entry = { type: "hold", at, id: ids, ...terms };
  if (released === undefined) return [hold];
  return [hold, ...called(released, "lock", "release", "k", { fencingToken, result: "true" })];
}

/** A call; without an end it was never answered. */
function called(
  [from, to]: readonly [number, number?],
  subject: "lock" | "register",
  action: string,
  key: string,
  details: Readonly<Record<string, string | number>>,
): Entry[] {
  ids += 1;
  const call: Entry = { type: "call", at: from, id: ids, subject, action, key, details };
  if (to === undefined) return [call];
  return [call, { type: "answer", at: to, id: ids, outcome: "ok" }];
}

const of =
  (defence: "fence" | "check") =>
  (
    times: readonly [number, number?],
    action: "read" | "write",
    details: Readonly<Record<string, string | number>>,
  ) =>
    called(times, "register", action, `register/k/${defence}`, details);
const [fenced, checked] = [of("fence"), of("check")];

async function judged(entries: readonly Entry[]): Promise<SecondOpinion> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-porcupine-"));
  onTestFinished(async () => await rm(folder, { recursive: true, force: true }));
  const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`);
  // A process that was killed leaves half a line.
  await writeFile(join(folder, "p1.jsonl"), `${lines.join("")}{"type":"ca`);
  return await judgeByPorcupine(folder);
}

const isHere = await hasGo();

describe.skipIf(!isHere)("Porcupine, where Go is installed", { timeout: 300_000 }, () => {
  const right = [
    ...held(10, 20, 1, [60, 70]),
    ...checked([21, 22], "read", { value: "" }),
    ...checked([30, 40], "write", { previous: "", value: "a", fencingToken: 1 }),
    ...held(50, 80, 2),
    ...checked([81, 82], "read", { value: "a" }),
  ];

  test("passes a right history", async () => {
    const { isRight, text } = await judged(right);
    expect(text).toBe("9 operations on 2 locks and registers: 0 wrong, 0 not judged");
    expect(isRight).toBe(true);
  });

  test.each<[string, readonly Entry[]]>([
    [
      "a write of unknown outcome that was seen",
      [
        ...fenced([30], "write", { previous: "", value: "a", fencingToken: 1 }),
        ...fenced([90, 91], "read", { value: "a" }),
      ],
    ],
    [
      "one that was not",
      [
        ...fenced([30], "write", { previous: "", value: "a", fencingToken: 1 }),
        ...fenced([90, 91], "read", { value: "" }),
      ],
    ],
    [
      "a stale write with a fence that the register does not know yet",
      [
        ...held(10, 20, 1),
        ...held(30, 40, 2),
        ...fenced([50, 60], "write", { previous: "", value: "a", fencingToken: 1 }),
      ],
    ],
    ["two handles of one lease", [...held(10, 20, 1), { ...held(30, 40, 1)[0], isShared: true } as Entry]],
  ])("passes %s", async (_what, entries) => {
    expect(await judged(entries)).toMatchObject({ isRight: true });
  });

  test.each<[string, readonly Entry[]]>([
    [
      "a lost update",
      [
        ...fenced([10, 20], "write", { previous: "", value: "a" }),
        ...fenced([30, 40], "write", { previous: "", value: "b" }),
      ],
    ],
    [
      "a checked write after a grant whose holder only read",
      [
        ...held(10, 20, 1),
        ...held(30, 40, 2),
        ...checked([50, 60], "write", { previous: "", value: "a", fencingToken: 1 }),
      ],
    ],
    [
      "a checked write after its own release",
      [
        ...held(10, 20, 1, [25, 28]),
        ...checked([50, 60], "write", { previous: "", value: "a", fencingToken: 1 }),
      ],
    ],
    [
      "a fenced write after a later holder's reading",
      [
        ...fenced([30, 40], "read", { value: "", fencingToken: 2 }),
        ...fenced([50, 60], "write", { previous: "", value: "a", fencingToken: 1 }),
      ],
    ],
    ["a release after another's grant", [...held(10, 20, 1, [50, 60]), ...held(30, 40, 2)]],
    ["a token that is smaller than an earlier one", [...held(10, 20, 2), ...held(30, 40, 1)]],
  ])("finds %s", async (_what, entries) => {
    const { isRight, text } = await judged(entries);
    expect(isRight).toBe(false);
    expect(text).toMatch(/have no order that agrees with the times/);
  });
});
