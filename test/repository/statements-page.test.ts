/** DESIGN.md shows what the lock says to DynamoDB, as it is sent. `vitest run -u` writes it anew. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { breakLease, requestRevocation, takeBackSlot } from "../../packages/client/src/admin/statements.ts";
import {
  acquire,
  cancel,
  release,
  renew,
  renewUnlessRevoked,
  revokeToken,
  stillHeld,
  takeOver,
} from "../../packages/client/src/statements/lock.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { clausesOf, conditionsIn } from "../support/recomposed.ts";

const page = new URL("../../docs/DESIGN.md", import.meta.url);
const lease = { key: "k" };
const proof = { token: "t", fencingToken: 1 };
const times = { acquiredAt: 1, expiresAt: 2, leaseDurationMs: 1, retentionMs: 1 };
const wishes = { reentrant: false, data: undefined, slot: undefined };
const grant = { token: "t", version: 1, owner: "o", ...times, ...wishes };
const renewal = { shown: proof, version: 2, expiresAt: 3, leaseDurationMs: 1, retentionMs: 1 };
const ending = { shown: proof, now: 1, retentionMs: 1, slot: undefined, cooldown: undefined };

const [free, renewed, released] = [acquire(lease, grant), renew(lease, renewal), release(lease, ending)];

/** A statement that is like another one is shown by what differs. */
const writes: readonly (readonly [what: string, write: Write, like?: Write])[] = [
  ["acquire, a free lock", free],
  [
    "acquire, for a slot, with a payload: as a free lock, but",
    acquire(lease, { ...grant, slot: "s", data: "{}" }),
    free,
  ],
  [
    "take over, from the record that was judged: as a free lock, but",
    takeOver(lease, grant, { token: "u", fencingToken: 1, version: 1 }),
    free,
  ],
  ["renew", renewed],
  ["renew, by a keeper: as renew, but", renewUnlessRevoked(lease, renewal), renewed],
  ["release", released],
  ["release, with its slot done: as release, but", release(lease, { ...ending, slot: "s" }), released],
  [
    "release, into a cooldown: as release, but",
    release(lease, { ...ending, cooldown: { until: 2, forMs: 1 } }),
    released,
  ],
  ["take back an acquisition without an answer", cancel(lease, { token: "t", now: 1, retentionMs: 1 })],
  ["revoke its token beside another's lease", revokeToken(lease, "t")],
  ["break another's lease", breakLease(lease, "t", 1)],
  ["ask its holder to stop", requestRevocation(lease, "t", "why")],
  ["take back a slot that is done", takeBackSlot({ key: "k", doneSlot: "s", to: undefined })],
  ["`conditionCheck()`", stillHeld(lease, proof)],
];

interface Clauses {
  readonly set: readonly string[];
  readonly remove: readonly string[];
  readonly conditions: readonly string[];
}

function partsOf(write: Write): Clauses {
  const { update, condition } = write.request();
  return { ...clausesOf(update), conditions: conditionsIn(condition) };
}

/** One clause a line, with its pieces below each other where there are several. */
function linesOf({ set, remove, conditions }: Clauses): string[] {
  return [
    ...(set.length === 0 ? [] : [`SET    ${set.join(",\n       ")}`]),
    ...(remove.length === 0 ? [] : [`REMOVE ${remove.join(", ")}`]),
    ...(conditions.length === 0 ? [] : [`IF     ${conditions.join("\n   AND ")}`]),
  ];
}

/** What the first has, and the second has not. */
function without(one: Clauses, other: Clauses): Clauses {
  const left = (name: keyof Clauses): string[] => one[name].filter((piece) => !other[name].includes(piece));
  return { set: left("set"), remove: left("remove"), conditions: left("conditions") };
}

function shown([what, write, like]: (typeof writes)[number]): string {
  const parts = partsOf(write);
  if (like === undefined) return [`-- ${what}`, ...linesOf(parts)].join("\n");
  const signed = (sign: string, clauses: Clauses): string[] =>
    linesOf(clauses).map((line) => `${sign}${line}`.replaceAll("\n", `\n${sign}`));
  const base = partsOf(like);
  return [`-- ${what}`, ...signed("+ ", without(parts, base)), ...signed("- ", without(base, parts))].join(
    "\n",
  );
}

it("the page has the statements of the lock", async () => {
  const text = readFileSync(page, "utf8");
  const block = ["```text", writes.map(shown).join("\n\n"), "```"].join("\n");
  const written = text.replace(
    /(<!-- statements[^>]*-->\n)[\s\S]*?(<!-- \/statements -->)/,
    `$1${block}\n$2`,
  );
  await expect(written).toMatchFileSnapshot(page.pathname);
});
