import { describe, expect, it } from "vitest";
import * as administration from "../../packages/client/src/admin/statements.ts";
import * as statements from "../../packages/client/src/statements/lock.ts";
import { noLaterHolder } from "../../packages/client/src/statements/queries.ts";
import { cases, conditions, mistakes } from "./cases.ts";
import { walk } from "./walk.ts";
import { guards, leftOut, type Sent, writes } from "./writes.ts";

const sent: Sent = {
  token: "t",
  version: 2,
  fence: 7,
  at: 1,
  expiresAt: 3,
  judged: { token: "other", version: 1, fencingToken: 6 },
  retention: 5,
};
/** Functions that give values to the writes or add a condition to them, and reads. */
const noWrites = ["judgedValues", "proofValues", "endText", "notGrantedSince", "leasesByPrefix", "leasesOf"];

/** A whole walk takes a minute and more; a busy machine may need ten times that. */
const timeout = 1_800_000;

describe("the model of the lock", () => {
  it("names every write of the lock, and leaves some out for a reason", () => {
    const named = [...Object.keys(writes), ...Object.keys(guards), ...Object.keys(leftOut), ...noWrites];
    const functions = Object.entries({ ...statements, ...administration }).filter(
      ([, one]) => typeof one === "function",
    );
    expect([...functions.map(([name]) => name), "noLaterHolder"].sort()).toEqual(named.sort());
  });

  it.each(Object.entries(writes))("states the conditions that %s sends", (_, { when, write }) => {
    const stated = when.map(({ expression }) => expression).join(" AND ");
    expect(write(sent).request().condition).toBe(stated);
  });

  it("states the conditions of the user's own writes", () => {
    const { condition } = statements.stillHeld({ key: "k" }, { token: "t", fencingToken: 7 }).request();
    expect(condition).toBe(guards.stillHeld.map(({ expression }) => expression).join(" AND "));
    expect(noLaterHolder("fence", 7).condition).toBe(guards.noLaterHolder.expression);
  });

  const [quick, ...others] = Object.entries(cases);
  it(`keeps its invariants, as the real expressions do: ${quick?.[0]}`, () => {
    const { wrong, writes: done } = walk(quick?.[1] as NonNullable<typeof quick>[1]);
    expect(wrong).toBeUndefined();
    expect(done).toBeGreaterThan(100);
  });

  it.each(others)(
    "keeps its invariants, as the real expressions do: %s",
    { tags: ["long"], timeout },
    (_, setting) => {
      expect(walk(setting).wrong).toBeUndefined();
    },
  );

  it.each([...conditions, ...mistakes])(
    "shows what goes wrong without $what",
    { tags: ["long"], timeout },
    (mistake) => {
      const shown = Object.values(cases).some((setting) => walk(setting, mistake).wrong !== undefined);
      expect(shown).toBe(true);
    },
  );
});
