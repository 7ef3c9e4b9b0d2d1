import { Election, type LeaderStep, leader as simulated } from "../../worlds/primitives/leader.ts";
import { foreignRelease, hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import type { Mistake, Planted } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario, wait } from "../scenario.ts";

const lead = (process: number): LeaderStep => ({ kind: "lead", process });
const stop = (process: number): LeaderStep => ({ kind: "stop", process });
const resign = (process: number): LeaderStep => ({ kind: "resign", process });

const make =
  (candidates: number, observes = false) =>
  (world: World, { tamper }: Planted): Election =>
    new Election(world, tamper, { candidates, isSteady: true, observes });
const end = (election: Election): Promise<void> => election.expectANewLeader();

const [, whileLed] = simulated.mistakes as [Mistake, Mistake];

export const leader = [
  scenario({
    name: "leader",
    faults: 1,
    kinds: ["answer lost", "sent twice", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [lead(0)] },
      { process: 0, steps: [wait(2_000), stop(0)] },
      { process: 1, steps: [lead(1)] },
      { process: 1, steps: [wait(6_500), stop(1)] },
    ],
    end,
    mistakes: [foreignRelease, whileLed],
  }),
  scenario({
    name: "leader:frozen",
    faults: 1,
    kinds: ["frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [lead(0)] },
      // Twice: a process that was frozen may begin to lead after the first.
      { process: 0, steps: [wait(1_000), stop(0), wait(500), stop(0)] },
      { process: 1, steps: [wait(900), lead(1)] },
      { process: 1, steps: [wait(6_500), stop(1), wait(500), stop(1)] },
    ],
    end,
    mistakes: [hastyExpiry, longBelief],
  }),
  scenario({
    name: "leader:resigned",
    faults: 1,
    kinds: ["answer lost", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [lead(0)] },
      { process: 0, steps: [wait(1_000), resign(0), wait(500), stop(0)] },
      { process: 1, steps: [lead(1)] },
      { process: 1, steps: [wait(3_000), stop(1)] },
    ],
    end,
    mistakes: [],
  }),
];
