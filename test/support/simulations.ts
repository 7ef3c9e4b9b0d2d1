import type { TransactionEntry, UpdateRequest } from "@leasehold/client";
import fc from "fast-check";
import { expect } from "vitest";
import type { Tamper } from "./simulated-weather.ts";
import type { Tally } from "./simulated-world.ts";

/** How often a property is tried: `SIMULATION_RUNS` in the environment asks for more, as for a night. */
export function runs(usual: number): number {
  return Math.max(usual, Number(process.env.SIMULATION_RUNS ?? 0));
}

/** A mistake that takes more runs than this to show itself would slip through the tests. */
const mostRuns = 400;

/** Gives what a property fails with, where a mistake has been planted. */
export async function violationOf<Values>(property: fc.IAsyncProperty<Values>): Promise<string> {
  const { failed, errorInstance } = await fc.check(property, {
    seed: 1,
    numRuns: mostRuns,
    endOnFailure: true,
  });
  return failed ? String(errorInstance) : `no violation in ${mostRuns} runs`;
}

/** Plants a mistake: a part of a condition that always holds. */
export function without(
  part: string,
  isMeant: (write: UpdateRequest | TransactionEntry) => boolean = () => true,
): Tamper {
  return (write) => {
    if (!write.condition.includes(part) || !isMeant(write)) return write;
    const [name = ""] = /#\w+/.exec(part) ?? [];
    const always = `(${part} OR attribute_exists(${name}) OR attribute_not_exists(${name}))`;
    return { ...write, condition: write.condition.replace(part, always) };
  };
}

/** One test of a condition, as it was sent. */
export interface SentTest {
  readonly attribute: string;
  /** A comparison, `exists` or `missing`. */
  readonly test: string;
  readonly write: UpdateRequest | TransactionEntry;
}

const sentTest = /(#\w+) (=|<>|<=|<) :\w+|attribute_(exists|not_exists)\((#\w+)\)/g;

/** Plants a mistake: of the tests that are meant, only this much is left. @default - nothing: they always hold */
export function withoutTests(
  isMeant: (test: SentTest) => boolean,
  left = (name: string): string => `(attribute_exists(${name}) OR attribute_not_exists(${name}))`,
): Tamper {
  return (write) => {
    const condition = write.condition.replace(
      sentTest,
      (text, compared?: string, comparison?: string, presence?: string, named?: string) => {
        const name = compared ?? named ?? "";
        const test = comparison ?? (presence === "exists" ? "exists" : "missing");
        if (!isMeant({ attribute: write.names[name] ?? "", test, write })) return text;
        return `(${text} OR ${left(name)})`;
      },
    );
    return { ...write, condition };
  };
}

/** Something that steps can be taken in. */
export interface Stage<Step> {
  readonly world: { check(): void; killAll(): void };
  take(step: Step): Promise<void>;
}

/** Takes all steps, and then what has to hold in the end; what is violated on the way fails at once. */
export async function play<Step>(
  stage: Stage<Step>,
  steps: readonly Step[],
  expectTheEnd: () => Promise<void>,
): Promise<void> {
  for (const step of steps) {
    await stage.take(step);
    stage.world.check();
  }
  await expectTheEnd();
  stage.world.check();
  stage.world.killAll();
}

/** Whatever steps are taken in what is made from a seed, after the opening ones, nothing is violated, nor in the end. */
export function played<Step, Scene extends Stage<Step>>(
  step: fc.Arbitrary<Step>,
  mostSteps: number,
  make: (seed: number) => Scene,
  expectTheEnd: (scene: Scene) => Promise<void>,
  opening: readonly Step[] = [],
): fc.IAsyncProperty<[number, Step[]]> {
  const steps = fc.array(step, { minLength: 30, maxLength: mostSteps });
  return fc.asyncProperty(fc.integer(), steps, async (seed, all) => {
    const scene = make(seed);
    await play(scene, [...opening, ...all], () => expectTheEnd(scene));
  });
}

/** Everything of this has happened at least once. */
export function expectToHaveHappened(tally: Tally, ...things: string[]): void {
  expect(things.filter((what) => !((tally[what] ?? 0) > 0))).toEqual([]);
}
