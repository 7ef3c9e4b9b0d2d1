import { describe, expect, it } from "vitest";
import { cases, conditions, mistakes, spare } from "../../model/cases.ts";
import { walk } from "../../model/walk.ts";
import { guards, leftOut, type Sent, writes } from "../../model/writes.ts";
import * as expressions from "../../packages/client/src/expressions.ts";
import { render, renderConditions } from "../../packages/client/src/store/write.ts";

const sent: Sent = {
  token: "t",
  version: 2,
  fence: 7,
  at: 1,
  expiresAt: 3,
  judged: { token: "other", version: 1, fencingToken: 6 },
  retention: 5,
};
/** Functions of expressions.ts that read, or that help to write an expression. */
const noWrites = ["render", "recordOnly", "leasesByPrefix", "everyItem", "leasesOf", "namesIn", "asJudged"];

/** A whole walk takes a minute and more; a busy machine may need ten times that. */
const timeout = 1_800_000;

describe("the model of the lock", () => {
  it("names every write of expressions.ts, and leaves some out for a reason", () => {
    const named = [...Object.keys(writes), ...Object.keys(guards), ...Object.keys(leftOut), ...noWrites];
    expect(Object.keys(expressions).sort()).toEqual(named.sort());
  });

  it.each(Object.entries(writes))("states the conditions that %s sends", (_, { when, write }) => {
    const stated = when.map(({ expression }) => expression).join(" AND ");
    expect(render(write(sent)).condition).toBe(stated);
  });

  it("states the conditions of the user's own writes", () => {
    const { condition } = renderConditions(expressions.stillHeld({ token: "t", fencingToken: 7 }));
    expect(condition).toBe(guards.stillHeld.map(({ expression }) => expression).join(" AND "));
    expect(expressions.noLaterHolder("fence", 7).condition).toBe(guards.noLaterHolder.expression);
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

  it.each(spare)(
    "misses nothing without $what: it follows from the others",
    { tags: ["long"], timeout },
    (mistake) => {
      for (const setting of Object.values(cases)) expect(walk(setting, mistake).wrong).toBeUndefined();
    },
  );
});
