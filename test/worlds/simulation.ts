import type { TransactionEntry, UpdateRequest } from "@leasehold/client";
import fc from "fast-check";
import { type Cluster, isMishap, type Mishap } from "./cluster.ts";
import { asItIs, type Tamper, wire } from "./network.ts";
import { type Line, type Tally, Violation, World, type WorldParts } from "./world.ts";

/** Plants a mistake into the code; gives a function that puts it right again. */
export type Plant = () => () => void;

/** Mistakes that have to be seen through, by what they are, each with what is seen then. */
export type Mistakes = Readonly<Record<string, readonly [plant: Plant, violation: RegExp]>>;

/** One primitive in one situation: what its actors do, and what must hold. */
export interface Simulation {
  /** The primitive, and after a colon the situation, if it has several. */
  readonly name: string;
  readonly claim: string;
  /** How many worlds the tests run. */
  readonly worlds: number;
  /** What has to happen in all of them, once or so often: a simulation in which it does not proves nothing. */
  readonly mustHappen: readonly (string | readonly [what: string, times: number])[];
  readonly mistakes: Mistakes;
  /** Plays until all has been seen, or until {@link World.check} throws. */
  play(world: World): Promise<void>;
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
  plant?: Plant,
  parts: Omit<WorldParts, "random" | "clock"> = {},
): Promise<Outcome> {
  const world = new World(seed, parts);
  const putRight = plant?.();
  try {
    await simulation.play(world);
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

/** Some processes, and what must hold of all that they do. */
export interface Scene<Step> {
  readonly world: Cluster<unknown>;
  /** What it remembers of several processes together, in the order in which it happened. @default - nothing */
  readonly state?: string;
  take(step: Step): void | Promise<void>;
  /** @default - what the cluster does */
  befall?(mishap: Mishap): Promise<void>;
  /** Nothing goes astray any more: looks at what has to hold then. */
  end(): Promise<void>;
}

/** Lets a step of a scene or a mishap happen, and what follows from it at once. */
export async function happen<Step extends object>(scene: Scene<Step>, step: Step | Mishap): Promise<void> {
  if (!isMishap(step)) await scene.take(step);
  else if (scene.befall === undefined) await scene.world.befall(step);
  else await scene.befall(step);
  await scene.world.clock.advance(0);
}

/** How a scene is played: steps that the seed determines, after the opening ones, and then its end. */
export interface Play<Step> {
  readonly step: fc.Arbitrary<Step | Mishap>;
  /** @default 30 */
  readonly fewestSteps?: number;
  readonly mostSteps: number;
  readonly opening?: readonly Step[];
  readonly make: (world: World) => Scene<Step>;
}

/** Takes one step after the other; what is violated on the way ends it at once. */
export function stepByStep<Step extends object>(play: Play<Step>): Simulation["play"] {
  const { step, fewestSteps = 30, mostSteps, opening = [], make } = play;
  const all = fc.array(step, { minLength: fewestSteps, maxLength: mostSteps });
  return async (world) => {
    const [steps = []] = fc.sample(all, { seed: world.seed, numRuns: 1 });
    const scene = make(world);
    for (const one of [...opening, ...steps]) {
      world.tell("step", () => JSON.stringify(one));
      await happen(scene, one);
      world.check();
    }
    world.tell("step", "the end");
    await scene.end();
    world.check();
    scene.world.killAll();
  };
}

type Write = UpdateRequest | TransactionEntry;

/** Plants a mistake into what is sent. */
export const sending =
  (tamper: Tamper): Plant =>
  () => {
    wire.tamper = tamper;
    return () => {
      wire.tamper = asItIs;
    };
  };

/** Which tests of conditions are meant, and what is left of them. */
export interface Meant {
  /** The attribute that is tested. @default - any */
  readonly of?: string | RegExp | readonly string[];
  /** A comparison, `exists` or `missing`. @default - any */
  readonly test?: string;
  /** @default - all writes */
  readonly by?: (write: Write) => boolean;
  /** What is left of a test of an attribute with this name. @default - nothing: it always holds */
  readonly left?: (name: string) => string;
}

const sentTest = /(#\w+) (=|<>|<=|<) :\w+|attribute_(exists|not_exists)\((#\w+)\)/g;

/** Leaves out the tests that are meant. */
export function untested({ of = /./, test, by = () => true, left = anything }: Meant): Tamper {
  const isMeant = (attribute: string): boolean =>
    of instanceof RegExp ? of.test(attribute) : [of].flat().includes(attribute);
  return (write) => {
    if (!by(write)) return write;
    const condition = write.condition.replace(
      sentTest,
      (text, compared?: string, comparison?: string, presence?: string, named?: string) => {
        const name = compared ?? named ?? "";
        const sent = comparison ?? (presence === "exists" ? "exists" : "missing");
        const isOther = test !== undefined && test !== sent;
        return isOther || !isMeant(write.names[name] ?? "") ? text : `(${text} OR ${left(name)})`;
      },
    );
    return { ...write, condition };
  };
}

/** Plants a mistake: the tests that are meant are left out. */
export const without = (meant: Meant): Plant => sending(untested(meant));

const anything = (name: string): string => `(attribute_exists(${name}) OR attribute_not_exists(${name}))`;
/** Leaves of a test that the attribute has to be there. */
export const exists = (name: string): string => `attribute_exists(${name})`;

/** Plants a mistake: writes that have this value, and that are meant, say another one. */
export const saying = (
  name: `:${string}`,
  value: string | number | ((said: string | number) => string | number),
  isMeant: (write: Write) => boolean = () => true,
): Plant =>
  sending((write) => {
    const said = write.values[name];
    if (said === undefined || !isMeant(write)) return write;
    return {
      ...write,
      values: { ...write.values, [name]: typeof value === "function" ? value(said) : value },
    };
  });

type Method = (...given: never[]) => unknown;
type As<Member> = Extract<NonNullable<Member>, Method>;

/** Plants a mistake: another method in place of one of a class. It gets that one, what it is called with, and on what. */
export function replacing<Type extends object, Name extends keyof Type>(
  prototype: Type,
  name: Name,
  mistaken: (
    original: (...given: Parameters<As<Type[Name]>>) => ReturnType<As<Type[Name]>>,
    given: Parameters<As<Type[Name]>>,
    self: Type,
  ) => ReturnType<As<Type[Name]>>,
): Plant {
  return () => {
    const original = prototype[name] as As<Type[Name]>;
    const planted = function (this: Type, ...given: Parameters<As<Type[Name]>>) {
      return mistaken((...own) => original.apply(this, own) as ReturnType<As<Type[Name]>>, given, this);
    };
    Object.assign(prototype, { [name]: planted });
    return () => Object.assign(prototype, { [name]: original });
  };
}

/** Plants several mistakes at once. */
export const both =
  (...plants: readonly Plant[]): Plant =>
  () => {
    const putRight = plants.map((plant) => plant());
    return () => {
      for (const each of putRight) each();
    };
  };

export const isGrant = ({ values }: { readonly values: object }): boolean => ":acquiredAt" in values;

/** Those of some mistakes whose words contain one of these; throws where there are none. */
export function named(mistakes: Mistakes, ...words: readonly string[]): Mistakes {
  const found = words.map((word) => Object.entries(mistakes).filter(([what]) => what.includes(word)));
  const missing = words.find((_, index) => found[index]?.length === 0);
  if (missing !== undefined) throw new Error(`no mistake is called ${missing}`);
  return Object.fromEntries(found.flat());
}
