import { Election, type LeaderStep } from "../../worlds/primitives/leader.ts";
import {
  foreignRelease,
  hastyExpiry,
  heldGrant,
  longBelief,
} from "../../worlds/primitives/lease-mistakes.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario, wait } from "../scenario.ts";

const lead = (process: number): LeaderStep => ({ kind: "lead", process });
const stop = (process: number): LeaderStep => ({ kind: "stop", process });
const resign = (process: number): LeaderStep => ({ kind: "resign", process });

const make = (world: World): Election =>
  new Election(world, { candidates: 2, isSteady: true, observes: false });

export const leader = [
  scenario({
    name: "leader",
    kinds: ["answer lost", "sent twice", ...dateFaults],
    make,
    lanes: [
      { process: 0, steps: [lead(0)] },
      { process: 0, steps: [wait(2_000), stop(0)] },
      { process: 1, steps: [lead(1)] },
      { process: 1, steps: [wait(6_500), stop(1)] },
    ],
    mistakes: { ...foreignRelease, ...heldGrant },
  }),
  scenario({
    name: "leader:frozen",
    kinds: ["frozen"],
    make,
    lanes: [
      { process: 0, steps: [lead(0)] },
      // Twice: a process that was frozen may begin to lead after the first.
      { process: 0, steps: [wait(1_000), stop(0), wait(500), stop(0)] },
      { process: 1, steps: [wait(900), lead(1)] },
      { process: 1, steps: [wait(6_500), stop(1), wait(500), stop(1)] },
    ],
    mistakes: { ...hastyExpiry, ...longBelief },
  }),
  scenario({
    name: "leader:resigned",
    kinds: ["answer lost", "killed"],
    make,
    lanes: [
      { process: 0, steps: [lead(0)] },
      { process: 0, steps: [wait(1_000), resign(0), wait(500), stop(0)] },
      { process: 1, steps: [lead(1)] },
      { process: 1, steps: [wait(3_000), stop(1)] },
    ],
  }),
];
