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

/** A statement, and the earlier one that it is shown as a change of. */
type Shown = readonly [what: string, write: Write, base?: string];

const writes: readonly Shown[] = [
  ["acquire, a free lock", acquire(lease, grant)],
  ["acquire, for a slot, with a payload", acquire(lease, { ...grant, slot: "s", data: "{}" }), "acquire"],
  [
    "take over, from the record that was judged",
    takeOver(lease, grant, { token: "u", fencingToken: 1, version: 1 }),
    "acquire",
  ],
  ["renew", renew(lease, renewal)],
  ["renew, by a keeper", renewUnlessRevoked(lease, renewal), "renew"],
  ["release", release(lease, ending)],
  ["release, with its slot done", release(lease, { ...ending, slot: "s" }), "release"],
  ["release, into a cooldown", release(lease, { ...ending, cooldown: { until: 2, forMs: 1 } }), "release"],
  ["take back an acquisition without an answer", cancel(lease, { token: "t", now: 1, retentionMs: 1 })],
  ["revoke its token beside another's lease", revokeToken(lease, "t")],
  ["break another's lease", breakLease(lease, "t", 1)],
  ["ask its holder to stop", requestRevocation(lease, "t", "why")],
  ["take back a slot that is done", takeBackSlot({ key: "k", doneSlot: "s", to: undefined })],
  ["`conditionCheck()`", stillHeld(lease, proof)],
];

/** What a write sets, removes and requires: each piece by itself. */
function piecesOf(write: Write): Readonly<Record<"set" | "remove" | "when", readonly string[]>> {
  const { update, condition } = write.request();
  return { ...clausesOf(update), when: conditionsIn(condition) };
}

/** One clause a line, with its pieces below each other where there are several. */
function wholeOf(write: Write): string[] {
  const { set, remove, when } = piecesOf(write);
  return [
    ...(set.length === 0 ? [] : [`SET    ${set.join(",\n       ")}`]),
    ...(remove.length === 0 ? [] : [`REMOVE ${remove.join(", ")}`]),
    `IF     ${when.join("\n   AND ")}`,
  ];
}

/** The pieces that a write has more than its base (`+`), and less (`-`). */
function changesOf(write: Write, base: Write): string[] {
  const [own, others] = [piecesOf(write), piecesOf(base)];
  const clauses = [
    ["SET   ", "set", ", "],
    ["REMOVE", "remove", ", "],
    ["IF    ", "when", " AND "],
  ] as const;
  return clauses.flatMap(([clause, kind, joint]) => {
    const less = others[kind].filter((piece) => !own[kind].includes(piece));
    const more = own[kind].filter((piece) => !others[kind].includes(piece));
    const line = (sign: string, pieces: readonly string[]): string[] =>
      pieces.length === 0 ? [] : [`${sign} ${clause} ${pieces.join(joint)}`];
    return [...line("-", less), ...line("+", more)];
  });
}

function shown([what, write, base]: Shown): string {
  const [, changed] = writes.find(([name]) => base !== undefined && name.split(",")[0] === base) ?? [];
  if (changed === undefined) return [`-- ${what}`, ...wholeOf(write)].join("\n");
  return [`-- ${what}: as \`${base}\`, but`, ...changesOf(write, changed)].join("\n");
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
