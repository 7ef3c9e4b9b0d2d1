import type { TransactionEntry, UpdateRequest } from "@leasehold/client";
import fc from "fast-check";
import type { Tamper } from "./network.ts";
import { type Line, type Tally, Violation, World, type WorldParts } from "./world.ts";

/** What is planted, for the simulation to see through: into what is sent, or into the client itself. */
export interface Planted {
  readonly tamper?: Tamper | undefined;
  /** Changes the client's code; gives a function that puts it right again. */
  readonly plant?: (() => () => void) | undefined;
}

/** A mistake that has to be seen through, and how. */
export interface Mistake extends Planted {
  readonly what: string;
  readonly violation: RegExp;
}

/** One primitive in one situation: what its actors do, and what must hold. */
export interface Simulation {
  /** The primitive, and after a colon the situation, if it has several. */
  readonly name: string;
  readonly claim: string;
  /** How many worlds the tests run. */
  readonly worlds: number;
  /** What has to happen so often in all of them, or at least once: a simulation in which it does not proves nothing. */
  readonly mustHappen: Readonly<Record<string, number>> | readonly string[];
  readonly mistakes: readonly Mistake[];
  /** Plays until all has been seen, or until {@link World.check} throws. */
  play(world: World, planted: Planted): Promise<void>;
}

/** What a simulation came to. */
export interface Outcome {
  readonly simulation: string;
  readonly seed: number;
  /** The first thing that must not be; undefined if nothing was wrong. */
  readonly violation: string | undefined;
  readonly timeline: readonly Line[];
  readonly tally: Tally;
  readonly virtualMs: number;
}

/**
 * Plays a simulation in the world that a seed determines.
 *
 * @param parts without `isTold` its outcome has no timeline: it is quicker, and otherwise the same
 */
export async function simulate(
  simulation: Simulation,
  seed: number,
  planted: Planted = {},
  parts: Omit<WorldParts, "random" | "clock"> = {},
): Promise<Outcome> {
  const world = new World(seed, parts);
  const putRight = planted.plant?.();
  try {
    await simulation.play(world, planted);
    world.check();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
  } finally {
    putRight?.();
  }
  const { violation, timeline, tally, now } = world;
  return { simulation: simulation.name, seed, violation, timeline, tally, virtualMs: now };
}

/** Steps of a kind, which are drawn so often beside the others. */
export function drawn<const Kind extends string, Parts extends object>(
  weight: number,
  kind: Kind,
  parts: { readonly [Name in keyof Parts]: fc.Arbitrary<Parts[Name]> },
): { readonly weight: number; readonly arbitrary: fc.Arbitrary<{ readonly kind: Kind } & Parts> } {
  const all = { kind: fc.constant(kind), ...parts } as Record<string, fc.Arbitrary<unknown>>;
  return { weight, arbitrary: fc.record(all) as fc.Arbitrary<{ readonly kind: Kind } & Parts> };
}

/** Something that steps can be taken in. */
export interface Stage<Step> {
  readonly world: { killAll(): void };
  take(step: Step): Promise<void>;
}

/** How a stage is played: steps that the seed determines, after the opening ones, and then what has to hold in the end. */
export interface Play<Step, Scene extends Stage<Step>> {
  readonly step: fc.Arbitrary<Step>;
  /** @default 30 */
  readonly fewestSteps?: number;
  readonly mostSteps: number;
  readonly opening?: readonly Step[];
  readonly make: (world: World, tamper: Tamper | undefined) => Scene;
  readonly end: (scene: Scene) => Promise<void>;
}

/** Takes one step after the other; what is violated on the way ends it at once. */
export function stepByStep<Step, Scene extends Stage<Step>>(play: Play<Step, Scene>): Simulation["play"] {
  const { step, fewestSteps = 30, mostSteps, opening = [], make, end } = play;
  const all = fc.array(step, { minLength: fewestSteps, maxLength: mostSteps });
  return async (world, { tamper }) => {
    const [steps = []] = fc.sample(all, { seed: world.seed, numRuns: 1 });
    const scene = make(world, tamper);
    const take = async (one: Step): Promise<void> => {
      world.tell("step", () => JSON.stringify(one));
      await scene.take(one);
      world.check();
    };
    for (const one of opening) await take(one);
    for (const one of steps) await take(one);
    world.tell("step", "the end");
    await end(scene);
    world.check();
    scene.world.killAll();
  };
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

/** Means the tests of this kind of all attributes that begin like this. */
export const startsWith =
  (prefix: string, test: string) =>
  (sent: SentTest): boolean =>
    sent.attribute.startsWith(prefix) && sent.test === test;

/** Plants a mistake: another method in place of one of a class. */
export function replacing<Type extends object, Name extends keyof Type>(
  prototype: Type,
  name: Name,
  mistaken: (original: Type[Name]) => Type[Name],
): Planted["plant"] {
  return () => {
    const original = prototype[name];
    prototype[name] = mistaken(original);
    return () => {
      prototype[name] = original;
    };
  };
}

export const isGrant = ({ values }: { readonly values: object }): boolean => ":acquiredAt" in values;
