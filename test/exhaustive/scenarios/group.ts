import { GroupClaim } from "../../../packages/client/src/primitives/group/group-acquisition.ts";
import { Contest, type GroupStep, group as simulated } from "../../worlds/primitives/group.ts";
import {
  foreignRelease,
  hastyExpiry,
  heldGrant,
  longBelief,
} from "../../worlds/primitives/lease-mistakes.ts";
import { isGrant, type Mistakes, named, replacing, without } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario, wait } from "../scenario.ts";

const acquire = (
  process: number,
  keys: readonly string[],
  waitMs: number,
  heartbeat: boolean | number = false,
): GroupStep => ({
  kind: "acquire",
  process,
  keys,
  waitMs,
  heartbeat,
  lockAtLeastForMs: 0,
});
const touch = (kind: "release" | "renew", process: number): GroupStep => ({ kind, which: 0, process });

const make =
  (processes: number) =>
  (world: World): Contest =>
    new Contest(world, processes);

const firstLockOnly: Mistakes = {
  "a transaction that insists on its first lock alone": [
    without({ of: "token", test: "missing", by: (write) => isGrant(write) && write.key.pk === "b" }),
    /believes to hold/,
  ],
};
const sameVersion: Mistakes = {
  "a repeated acquisition with the version of the first": [
    replacing(GroupClaim.prototype, "nextVersion", (nextVersion, given) => {
      nextVersion(...given);
      return 1;
    }),
    /believes to hold/,
  ],
};

export const group = [
  scenario({
    name: "group",
    kinds: ["request late", "answer lost", "sent twice", "conflict", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 0), touch("release", 0)] },
      { process: 1, steps: [acquire(1, ["b", "a"], 8_000), touch("release", 1)] },
    ],
    mistakes: named(simulated.mistakes, "maximum"),
  }),
  scenario({
    name: "group:taken over",
    kinds: [
      "request lost",
      "answer lost",
      "answer late",
      "sent twice",
      "read lags",
      "killed",
      "suspended",
      "frozen",
    ],
    make: make(2),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 12_000), { kind: "wait", ms: 4_000 }, touch("renew", 0)] },
      { process: 1, steps: [acquire(1, ["b", "a"], 12_000)] },
    ],
    mistakes: { ...hastyExpiry, ...longBelief, ...sameVersion },
  }),
  scenario({
    name: "group:renewed",
    faults: 2,
    kinds: ["throttled", "answer lost"],
    make: make(2),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 0, 2_400), wait(6_500), touch("release", 0)] },
      { process: 1, steps: [wait(1_000), acquire(1, ["b"], 9_000), touch("release", 1)] },
    ],
  }),
  scenario({
    name: "group:three",
    kinds: ["answer lost", "sent twice", "conflict", "killed"],
    make: make(3),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 0), touch("release", 0)] },
      { process: 1, steps: [acquire(1, ["b", "c"], 8_000)] },
      { process: 2, steps: [acquire(2, ["c", "a"], 8_000)] },
    ],
    mistakes: { ...foreignRelease, ...heldGrant, ...firstLockOnly },
  }),
];
