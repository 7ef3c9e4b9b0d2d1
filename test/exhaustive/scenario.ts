import type { Mistakes, Scene } from "../worlds/simulation.ts";
import type { World } from "../worlds/world.ts";

/** What can befall the processes and what they send, each time at the cost of one fault. */
export type FaultKind =
  | "request lost"
  | "request late"
  | "answer lost"
  | "answer late"
  | "sent twice"
  | "conflict"
  /** The service refuses a request for want of capacity, and says so. */
  | "throttled"
  | "read lags"
  | "killed"
  | "frozen"
  | "suspended"
  | "clock ahead"
  | "clock back"
  /** From now on a proxy takes the Date out of the host's answers. */
  | "no Dates"
  /** A proxy puts a Date of its own into an answer. */
  | "Date replaced"
  | "ttl";

/** What can befall what one host hears of the service's time. */
export const dateFaults: readonly FaultKind[] = ["no Dates", "Date replaced"];

/** Time that passes before a lane's next step. */
export interface Wait {
  readonly kind: "wait";
  readonly ms: number;
}

/** Lets time pass before a lane's next step. */
export const wait = (ms: number): Wait => ({ kind: "wait", ms });

/** What one process is told to do, step after step, each when the calls of the one before have settled. */
export interface Lane<Step> {
  readonly process: number;
  readonly steps: readonly (Step | Wait)[];
}

/** A small case, of which every course is explored. */
export interface Scenario<Step> {
  /** The primitive, and after a colon the situation. */
  readonly name: string;
  /** How many faults befall it at most. @default 1 */
  readonly faults?: number;
  /** The kinds of faults that befall it. */
  readonly kinds: readonly FaultKind[];
  /** What comes before is an opening, in which no fault befalls it; in milliseconds. @default 0 */
  readonly openingMs?: number;
  /** What stands where chance would decide something that is not explored. @default 0.5 */
  readonly fraction?: number;
  readonly make: (world: World) => Scene<Step>;
  /** What goes on side by side. */
  readonly lanes: readonly Lane<Step>[];
  /** What has to be found. @default - nothing */
  readonly mistakes?: Mistakes;
}

/** A scenario whose steps are not known here. */
export type AnyScenario = Scenario<unknown> & Required<Pick<Scenario<unknown>, "faults" | "mistakes">>;

/** Checks that the steps are those of the scene. */
export function scenario<Step>(one: Scenario<Step>): AnyScenario {
  return { faults: 1, mistakes: {}, ...one } as AnyScenario;
}

/** What is different where more faults befall a case. */
type Group = Pick<AnyScenario, "kinds"> & Partial<Pick<AnyScenario, "lanes" | "mistakes">>;

/**
 * The same case with more faults, of some kinds at a time: with all of its kinds nobody would wait for its end. Each is
 * named after what befalls it.
 */
export function withFaults(
  one: AnyScenario,
  faults: number,
  groups: Readonly<Record<string, Group>>,
): readonly AnyScenario[] {
  return Object.entries(groups).map(([name, group]) => ({
    ...one,
    mistakes: {},
    ...group,
    name: `${one.name}:${name}`,
    faults,
  }));
}
