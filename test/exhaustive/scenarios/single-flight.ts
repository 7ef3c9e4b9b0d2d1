import { CacheAccess } from "../../../packages/client/src/primitives/single-flight/cache-access.ts";
import { Callers } from "../../../packages/client/src/primitives/single-flight/callers.ts";
import { cacheSortKey } from "../../../packages/client/src/primitives/single-flight/entry.ts";
import { ProcessMemory } from "../../../packages/client/src/primitives/single-flight/process-memory.ts";
import { Network } from "../../worlds/network.ts";
import {
  foreignRelease,
  hastyExpiry,
  heldGrant,
  longBelief,
} from "../../worlds/primitives/lease-mistakes.ts";
import { type FlightStep, Site, singleFlight as simulated } from "../../worlds/primitives/single-flight.ts";
import { type Mistakes, named, replacing, without } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { dateFaults, scenario, wait } from "../scenario.ts";

const key = "x";
const call = (
  process: number,
  given: Partial<Omit<FlightStep & { readonly kind: "call" }, "kind" | "process">> = {},
): FlightStep => ({
  kind: "call",
  process,
  key,
  waitMs: 8_000,
  computeMs: 1_000,
  fails: false,
  forceRefresh: false,
  ...given,
});
const invalidate = (process: number): FlightStep => ({ kind: "invalidate", process, key });

/** Values are fresh for 3 s, and may be given for 6 s more. */
const make =
  (places: number, staleWithinMs?: number, hasLevels = false) =>
  (world: World): Site =>
    new Site(world, { places, wanted: [key], staleWithinMs, hasLevels });

const cameBack = /was invalidated, and came back/;
const marks: Mistakes = {
  ...named(simulated.mistakes, "store over"),
  "an invalidation that writes nothing": [
    replacing(CacheAccess.prototype, "forget", async () => {}),
    cameBack,
  ],
};

export const singleFlight = [
  scenario({
    name: "single-flight",
    kinds: ["request late", "answer lost", "sent twice", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0)] },
      { process: 1, steps: [call(1, { forceRefresh: true })] },
    ],
    mistakes: { ...named(simulated.mistakes, "earlier holder"), ...heldGrant, ...foreignRelease },
  }),
  scenario({
    name: "single-flight:lost",
    kinds: ["answer lost", "answer late", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 4_000 })] },
      { process: 1, steps: [call(1, { computeMs: 2_000, waitMs: 12_000 })] },
    ],
    mistakes: { ...hastyExpiry, ...longBelief },
  }),
  scenario({
    name: "single-flight:invalidated",
    kinds: ["request late", "answer lost", "sent twice", "read lags", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0)] },
      { process: 1, steps: [wait(500), invalidate(1), call(1)] },
    ],
    mistakes: marks,
  }),
  scenario({
    name: "single-flight:forgotten",
    kinds: ["request late", "answer lost", "sent twice", "read lags", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 })] },
      // Later than the lag of a read, and while the value is fresh.
      { process: 1, steps: [wait(2_050), invalidate(1), call(1)] },
    ],
    mistakes: {
      "a look at the cache that may lag": [
        replacing(Network.prototype, "get", (get, [request, options]) => {
          const consistent = request.consistent && request.key.sk !== cacheSortKey;
          return get({ ...request, consistent }, options);
        }),
        cameBack,
      ],
    },
  }),
  scenario({
    name: "single-flight:failing",
    kinds: ["answer lost", "sent twice", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(4_000), call(0, { fails: true })] },
      { process: 1, steps: [wait(4_500), invalidate(1), wait(600), call(1)] },
    ],
    mistakes: {
      "a failure that keeps a value which was invalidated": [
        without({ of: "fence", test: "=", by: ({ key }) => key.sk === cacheSortKey }),
        /was invalidated, and came back|was replaced by one/,
      ],
    },
  }),
  scenario({
    name: "single-flight:stale",
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: make(2, 2_800),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(5_550), call(0, { computeMs: 4_500 })] },
      { process: 1, steps: [wait(5_600), call(1), call(1, { forceRefresh: true })] },
    ],
    mistakes: {
      "a caller that waits although there is a stale value": [
        replacing(Callers.prototype, "serveStale", () => {}),
        /waited .* beside a stale value/,
      ],
      "a stale value for a caller that asks for a refresh": [
        replacing(Callers.prototype, "join", (join, [terms, signal]) =>
          join({ ...terms, staleOnContention: true }, signal),
        ),
        /was begun before the refresh/,
      ],
    },
  }),
  scenario({
    // Each process keeps a value for 2 s, and refreshes it 2.5 s ahead.
    name: "single-flight:ahead",
    kinds: ["request late", "answer lost", "sent twice", "killed", "frozen"],
    make: make(2, undefined, true),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(2_000), call(0), wait(300), call(0)] },
      { process: 1, steps: [wait(2_400), call(1), invalidate(1), call(1)] },
    ],
    mistakes: {
      ...marks,
      "a process's memory that does not hear of an invalidation": [
        replacing(ProcessMemory.prototype, "forget", () => undefined),
        cameBack,
      ],
    },
  }),
  scenario({
    name: "single-flight:stale-over",
    kinds: ["request late", "answer lost", "answer late", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(10_500), call(0, { computeMs: 2_000 })] },
      { process: 1, steps: [wait(11_000), call(1)] },
    ],
    mistakes: {
      "a stale value that is given for ever": [
        replacing(CacheAccess.prototype, "read", async (read, given) => {
          const entry = await read(...given);
          return entry && { ...entry, staleUntil: Number.POSITIVE_INFINITY };
        }),
        /ms after it was computed/,
      ],
    },
  }),
];
