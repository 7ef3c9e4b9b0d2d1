import { describe, expect, it } from "vitest";
import { explore, find, retell } from "./explore.ts";
import { scenarios } from "./scenarios/index.ts";

/** Longer than any of them takes; a machine that is busy may need it. */
const longest = 900_000;
/** Every course of more would be too much for a test: `npm run evidence -- explore` plays them. */
const mostSeconds = 1;

async function expectToHold(name: string, faults: number): Promise<void> {
  const scenario = scenarios.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`no scenario has the name ${name}`);
  const result = await explore(scenario, { faults, milliseconds: mostSeconds * 1_000 });
  if (result.violation === undefined) return;
  const story = await retell(scenario, result.violation.path, { faults });
  expect.fail(`\n${story.map(({ at, who, text }) => `${Math.round(at)} ms  ${who}  ${text}`).join("\n")}`);
}

describe.each(scenarios)("every course of $name", ({ name, faults, mistakes, ...scenario }) => {
  it("holds without a fault", async () => expectToHold(name, 0), longest);

  it(`holds with up to ${faults} faults, as far as a second goes`, {
    tags: ["long"],
    timeout: longest,
  }, async () => {
    await expectToHold(name, faults);
  });

  it.each(Object.entries(mistakes))("shows %s", { tags: ["long"], timeout: longest }, async (_, row) => {
    const [plant, expected] = row;
    const { violation } = await find({ name, faults, mistakes, ...scenario }, plant);
    expect(violation?.text).toMatch(expected);
  });
});

const lock = scenarios.find(({ name }) => name === "lock");

describe("an exploration", () => {
  it("plays every course of one fault, and the same ones each time", { tags: ["long"] }, async () => {
    if (lock === undefined) throw new Error("the lock is gone");
    const one = await explore(lock, { faults: 1 });
    const other = await explore(lock, { faults: 1 });
    expect(one.violation).toBeUndefined();
    expect(one.states).toBeGreaterThan(1_000);
    expect([other.states, other.courses]).toEqual([one.states, one.courses]);
  });

  it("gives a violation with the choices that lead to it, which lead to it again", async () => {
    const [plant] = lock?.mistakes["a release that takes any holder's lease"] ?? [];
    if (lock === undefined || plant === undefined) throw new Error("the mistake is gone");
    const { faults, violation } = await find(lock, plant);
    const story = await retell(lock, violation?.path ?? [], { faults, plant });
    expect(story.filter(({ who }) => who === "MONITOR")[0]?.text).toBe(violation?.text);
    expect(story.filter(({ who }) => who === "choice").length).toBeGreaterThan(5);
  });
});
