import { GroupClaim } from "../../../packages/client/src/primitives/group/group-acquisition.ts";
import { Contest, type GroupStep, group as simulated } from "../../worlds/primitives/group.ts";
import { foreignRelease, hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { isGrant, type Mistake, type Planted, replacing, without } from "../../worlds/simulation.ts";
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
  (world: World, { tamper }: Planted): Contest =>
    new Contest(world, tamper, processes);
const end = (contest: Contest): Promise<void> => contest.expectNobodyToWaitForEver();

const [, whileHeld, noMaximum] = simulated.mistakes as [Mistake, Mistake, Mistake];

const firstLockOnly: Mistake = {
  what: "a transaction that insists on its first lock alone",
  tamper: without("attribute_not_exists(#token)", (write) => isGrant(write) && write.key.pk === "b"),
  violation: /believes to hold/,
};
const sameVersion: Mistake = {
  what: "a repeated acquisition with the version of the first",
  plant: replacing(
    GroupClaim.prototype,
    "nextVersion",
    (nextVersion) =>
      function (this: GroupClaim, fencingToken) {
        nextVersion.call(this, fencingToken);
        return 1;
      },
  ),
  violation: /believes to hold/,
};

export const group = [
  scenario({
    name: "group",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "conflict", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 0), touch("release", 0)] },
      { process: 1, steps: [acquire(1, ["b", "a"], 8_000), touch("release", 1)] },
    ],
    end,
    mistakes: [noMaximum],
  }),
  scenario({
    name: "group:taken over",
    faults: 1,
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
    end,
    mistakes: [hastyExpiry, longBelief, sameVersion],
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
    end,
    mistakes: [],
  }),
  scenario({
    name: "group:three",
    faults: 1,
    kinds: ["answer lost", "sent twice", "conflict", "killed"],
    make: make(3),
    lanes: [
      { process: 0, steps: [acquire(0, ["a", "b"], 0), touch("release", 0)] },
      { process: 1, steps: [acquire(1, ["b", "c"], 8_000)] },
      { process: 2, steps: [acquire(2, ["c", "a"], 8_000)] },
    ],
    end,
    mistakes: [foreignRelease, whileHeld, firstLockOnly],
  }),
];
