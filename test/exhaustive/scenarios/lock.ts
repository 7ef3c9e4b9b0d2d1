import { clockSkewMs } from "../../worlds/cluster.ts";
import { LockScene, type LockStep } from "../../worlds/primitives/lock.ts";
import { ofScenarios } from "../../worlds/primitives/lock-mistakes.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, type FaultKind, type Lane, scenario, type Wait, wait, withFaults } from "../scenario.ts";

type Options = Omit<Extract<LockStep, { kind: "acquire" }>, "kind" | "process">;
type Act = Exclude<LockStep["kind"], "acquire" | "clock">;

const behindMs = 0.9 * clockSkewMs;

/** One process's steps; `acquire` waits as long as is said. */
function lane(process: number, ...steps: readonly (Act | Options | Wait)[]): Lane<LockStep> {
  return {
    process,
    steps: steps.map((one) => {
      if (typeof one === "string") return { kind: one, process } as LockStep;
      return "kind" in one ? one : { kind: "acquire", process, ...one };
    }),
  };
}

const messages: readonly FaultKind[] = [
  "request lost",
  "request late",
  "answer lost",
  "answer late",
  "sent twice",
];
const make = (world: World): LockScene => new LockScene(world);
const waits = { waitMs: 9_000 };

const usual = scenario({
  name: "lock",
  kinds: [...messages, "killed", "frozen", ...dateFaults],
  make,
  lanes: [lane(0, {}, "write", "release", "write"), lane(1, waits, "write", "release")],
  mistakes: ofScenarios.lock,
});

const renewed = scenario({
  name: "lock:renewed",
  kinds: ["request lost", "request late", "answer lost", "answer late", "killed", "frozen"],
  make,
  lanes: [lane(0, { heartbeat: true }, wait(4_000), "write", "release"), lane(1, waits, "write")],
  mistakes: ofScenarios.renewed,
});

const judgedLate = scenario({
  name: "lock:judged-late",
  kinds: [...messages, "killed", "frozen"],
  make,
  // Its renewal lands between an answer to the other caller and the moment at which that caller judges the answer.
  lanes: [lane(0, {}, wait(3_000), "renew", wait(3_500), "write", "release"), lane(1, waits, "write")],
  mistakes: ofScenarios["judged-late"],
});

export const lock = [
  usual,
  ...withFaults(usual, 2, {
    "two-lost": { kinds: ["request lost", "answer lost", "sent twice", "killed"] },
    "two-late": { kinds: ["request late", "answer late"] },
    "two-frozen": {
      kinds: ["frozen", "answer lost"],
      lanes: [lane(0, {}, "release"), lane(1, { waitMs: 6_000 }, "write")],
    },
  }),
  scenario({
    name: "lock:slow",
    faults: 2,
    kinds: ["request late", "request lost", "answer late"],
    make,
    lanes: [lane(0, {}, wait(6_500), "write"), lane(1, wait(1_000), waits, "write")],
    mistakes: ofScenarios.slow,
  }),
  scenario({
    name: "lock:three-callers",
    kinds: [...messages, "killed", "frozen"],
    make,
    lanes: [lane(0, {}, "release"), lane(1, waits, "write", "release"), lane(2, waits, "write", "release")],
    mistakes: ofScenarios["three-callers"],
  }),
  renewed,
  ...withFaults(renewed, 2, {
    "two-lost": { kinds: ["request lost", "answer lost", "killed"] },
    "two-late": { kinds: ["request late", "answer late"] },
    "two-frozen": {
      kinds: ["frozen", "answer lost"],
      lanes: [
        lane(0, { heartbeat: true }, wait(2_500), "write", "release"),
        lane(1, { waitMs: 6_000 }, "write"),
      ],
    },
  }),
  scenario({
    name: "lock:renewed-late",
    kinds: messages,
    make,
    lanes: [
      lane(0, {}, "renew", wait(1_000), "renew", wait(5_000), "write"),
      lane(1, wait(500), waits, "write", "release"),
    ],
    mistakes: ofScenarios["renewed-late"],
  }),
  judgedLate,
  ...withFaults(judgedLate, 2, { "two-frozen": { kinds: ["frozen", "request late"] } }),
  scenario({
    name: "lock:clocks",
    faults: 2,
    kinds: ["clock ahead", "clock back", "suspended", ...dateFaults],
    // Machines that can be suspended, and whose uptime tells of it.
    fraction: 0.3,
    make,
    lanes: [
      lane(0, wait(0), {}, wait(4_000), "write", wait(3_000), "write"),
      lane(1, waits, "write", "renew", wait(4_000), "write"),
    ],
    mistakes: ofScenarios.clocks,
  }),
  scenario({
    name: "lock:slow-service",
    kinds: [...messages, "killed", "frozen"],
    // The service's host that answers the holder is behind the one that answers the waiter, by nearly the allowance.
    make: (world) => new LockScene(world, { serviceAheadMs: (index) => (index === 0 ? -behindMs : 0) }),
    lanes: [
      {
        process: 0,
        steps: [
          { kind: "clock", process: 0, aheadMs: -behindMs },
          // Just before a full second of that host, so that the answer's Date leaves its lease no time to spare.
          wait(behindMs + 990),
          { kind: "acquire", process: 0, heartbeat: false },
          wait(4_900),
          { kind: "write", process: 0 },
        ],
      },
      // At a full second, so that the answer's Date tells this caller the time exactly.
      lane(1, wait(2_000), waits, "write"),
    ],
    mistakes: ofScenarios["slow-service"],
  }),
  scenario({
    name: "lock:first-renewal",
    kinds: ["throttled", "request lost", "answer lost"],
    make: (world) => new LockScene(world, { isTidy: true }),
    lanes: [
      // What its first answer tells corrects the expiry that it has written, by a renewal at once.
      {
        process: 0,
        steps: [
          { kind: "clock", process: 0, aheadMs: 20_000 },
          { kind: "acquire", process: 0 },
          { kind: "write", process: 0 },
          { kind: "release", process: 0 },
        ],
      },
      lane(1, wait(1_000), { waitMs: 1_000 }, "write", "release"),
    ],
    mistakes: ofScenarios["first-renewal"],
  }),
  scenario({
    name: "lock:untold",
    kinds: ["request lost", "answer lost", "answer late", "killed", "frozen"],
    // The first host's answers have no Date, and its clock is behind by more than a lease.
    make: (world) => new LockScene(world, { dates: (index) => (index === 0 ? "stripped" : "kept") }),
    lanes: [
      {
        process: 0,
        steps: [
          { kind: "clock", process: 0, aheadMs: -6_000 },
          { kind: "acquire", process: 0 },
          { kind: "wait", ms: 4_000 },
          { kind: "write", process: 0 },
        ],
      },
      lane(1, wait(1_000), waits, "write"),
    ],
    mistakes: ofScenarios.untold,
  }),
  scenario({
    name: "lock:handed-over",
    kinds: ["request late", "answer late", "clock back", "clock ahead", "killed"],
    make,
    lanes: [
      lane(0, {}, "hand over"),
      // It has heard the service's time: before, it would not hold the lease until a renewal is confirmed.
      lane(1, {}, wait(1_000), "adopt", "write", wait(7_000), "write", "renew", "release"),
      lane(2, wait(1_500), waits, "write"),
    ],
    mistakes: ofScenarios["handed-over"],
  }),
  scenario({
    name: "lock:late-copies",
    kinds: ["sent twice", "request late"],
    make,
    lanes: [
      lane(0, {}, "check", "release", wait(1_500), "check", "revive", wait(1_000), "check"),
      lane(1, wait(500), {}, "check", "release", wait(1_500), {}, "check", "release"),
    ],
    mistakes: ofScenarios["late-copies"],
  }),
  scenario({
    name: "lock:slots",
    kinds: [...messages, "killed"],
    make,
    lanes: [
      lane(0, { slot: "1" }, "complete", { slot: "2" }, "release"),
      lane(1, { slot: "1", ...waits }, "complete", { slot: "2", ...waits }, "complete"),
    ],
    mistakes: ofScenarios.slots,
  }),
  scenario({
    name: "lock:kept-closed",
    kinds: [...messages, "killed"],
    make,
    lanes: [lane(0, { lockAtLeastForMs: 3_000 }, "release"), lane(1, waits, "write", "release")],
    mistakes: ofScenarios["kept-closed"],
  }),
  scenario({
    name: "lock:reentrant",
    kinds: [...messages, "frozen"],
    make,
    lanes: [
      { process: 0, steps: reentrantSteps("one", 500) },
      { process: 0, steps: reentrantSteps("two", 1_000) },
      lane(1, waits, "write", "release"),
    ],
    mistakes: ofScenarios.reentrant,
  }),
  scenario({
    name: "lock:removed-by-ttl",
    faults: 2,
    kinds: ["ttl", "killed", "request late"],
    make,
    lanes: [
      lane(0, {}, "write", "release"),
      lane(1, wait(9_000), {}, "write", "release", wait(15_000), {}, "write", "release"),
    ],
    mistakes: ofScenarios["removed-by-ttl"],
  }),
];

function reentrantSteps(as: string, forMs: number): Lane<LockStep>["steps"] {
  const of = { process: 0, as } as const;
  return [
    { kind: "acquire", ...of, owner: "p0", reentrant: true, waitMs: 9_000 },
    wait(forMs),
    { kind: "write", ...of },
    { kind: "release", ...of },
  ];
}
