import { Desk, type VisitStep } from "../../worlds/primitives/check-in.ts";
import { lineMistakes } from "../../worlds/primitives/fair-lock.ts";
import { named } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, type Lane, scenario, type Wait, wait } from "../scenario.ts";

const [ann, bob, cyd] = [0, 1, 2];
const names = ["ann", "bob", "cyd"];

const come = (who: number, join = true) => ({ kind: "come", who, join }) as const;
const go = (who: number) => ({ kind: "go", who }) as const;

/** What visitors do at one desk, one after the other. */
function desk(
  process: number,
  ...steps: readonly (ReturnType<typeof come | typeof go> | Wait)[]
): Lane<VisitStep> {
  return {
    process,
    steps: steps.map((step) => (step.kind === "wait" ? step : { ...step, desks: [process] })),
  };
}

const make = (world: World): Desk => new Desk(world, { processes: 2, names });

export const checkIn = [
  scenario({
    name: "check-in",
    kinds: ["request lost", "answer lost", "sent twice", "killed", ...dateFaults],
    make,
    lanes: [
      desk(0, come(ann), wait(100), come(bob), wait(400), go(ann), come(bob), go(bob)),
      desk(1, come(cyd), wait(800), come(cyd), go(cyd), come(cyd), go(cyd)),
    ],
    mistakes: named(lineMistakes, "bound"),
  }),
  // Others come between a newcomer's look and what follows from it.
  scenario({
    name: "check-in:newcomer",
    kinds: ["request late", "killed", "frozen"],
    make,
    lanes: [
      desk(0, come(ann), wait(100), come(bob), wait(400), go(ann), wait(200), come(bob)),
      desk(1, come(cyd)),
    ],
    mistakes: named(lineMistakes, "newcomer"),
  }),
  // A visitor that has heard nothing comes to another desk, and both copies run at once.
  scenario({
    name: "check-in:two-desks",
    kinds: ["request lost", "request late", "answer lost", "sent twice"],
    make,
    lanes: [
      desk(0, come(ann), wait(500), come(bob), wait(500), go(ann), come(bob)),
      desk(1, wait(500), come(bob), wait(1_000), go(bob), come(bob)),
    ],
    mistakes: named(lineMistakes, "second ticket"),
  }),
  // The holder comes again between another one's look and what follows from it.
  scenario({
    name: "check-in:holder",
    kinds: ["request late", "answer lost", "killed", "frozen"],
    make,
    lanes: [
      desk(0, come(ann), wait(3_000), come(ann), wait(3_500), come(ann)),
      desk(1, wait(1_000), come(bob), wait(1_500), come(bob)),
    ],
    mistakes: named(lineMistakes, "has renewed"),
  }),
  // A waiter comes again between the look of one behind it and what follows from it.
  scenario({
    name: "check-in:waiter",
    kinds: ["request late", "answer lost", "killed", "frozen"],
    make,
    lanes: [
      desk(0, come(ann), wait(100), come(bob), wait(3_900), come(bob), wait(2_500), come(bob)),
      desk(1, wait(1_000), come(cyd), wait(1_500), come(cyd)),
    ],
    mistakes: named(lineMistakes, "has answered"),
  }),
];
