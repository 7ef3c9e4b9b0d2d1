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

const writes: readonly (readonly [what: string, write: Write])[] = [
  ["acquire, a free lock", acquire(lease, grant)],
  ["acquire, for a slot, with a payload", acquire(lease, { ...grant, slot: "s", data: "{}" })],
  [
    "take over, from the record that was judged",
    takeOver(lease, grant, { token: "u", fencingToken: 1, version: 1 }),
  ],
  ["renew", renew(lease, renewal)],
  ["renew, by a keeper", renewUnlessRevoked(lease, renewal)],
  ["release", release(lease, ending)],
  ["release, with its slot done", release(lease, { ...ending, slot: "s" })],
  ["release, into a cooldown", release(lease, { ...ending, cooldown: { until: 2, forMs: 1 } })],
  ["take back an acquisition without an answer", cancel(lease, { token: "t", now: 1, retentionMs: 1 })],
  ["revoke its token beside another's lease", revokeToken(lease, "t")],
  ["break another's lease", breakLease(lease, "t", 1)],
  ["ask its holder to stop", requestRevocation(lease, "t", "why")],
  ["take back a slot that is done", takeBackSlot({ key: "k", doneSlot: "s", to: undefined })],
  ["`conditionCheck()`", stillHeld(lease, proof)],
];

/** One clause a line, with its pieces below each other where there are several. */
function shown([what, write]: (typeof writes)[number]): string {
  const { update, condition } = write.request();
  const { set, remove } = clausesOf(update);
  const clauses = [
    ...(set.length === 0 ? [] : [`SET    ${set.join(",\n       ")}`]),
    ...(remove.length === 0 ? [] : [`REMOVE ${remove.join(", ")}`]),
    `IF     ${conditionsIn(condition).join("\n   AND ")}`,
  ];
  return [`-- ${what}`, ...clauses].join("\n");
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
