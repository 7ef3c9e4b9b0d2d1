import { CacheAccess } from "../../../packages/client/src/primitives/single-flight/cache-access.ts";
import { Callers } from "../../../packages/client/src/primitives/single-flight/callers.ts";
import { cacheSortKey } from "../../../packages/client/src/primitives/single-flight/entry.ts";
import { ProcessMemory } from "../../../packages/client/src/primitives/single-flight/process-memory.ts";
import { Network } from "../../worlds/network.ts";
import { foreignRelease, hastyExpiry, longBelief } from "../../worlds/primitives/lease-mistakes.ts";
import { type FlightStep, Site, singleFlight as simulated } from "../../worlds/primitives/single-flight.ts";
import { type Mistake, type Planted, replacing, withoutTests } from "../../worlds/simulation.ts";
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
  (world: World, { tamper }: Planted): Site =>
    new Site(world, tamper, { places, wanted: [key], staleWithinMs, hasLevels });
const end = (site: Site): Promise<void> => site.expectValuesForAll();

const [secondHolder, earlierResult, weakMark] = simulated.mistakes as [Mistake, Mistake, Mistake];

const noMark: Mistake = {
  what: "an invalidation that writes nothing",
  plant: replacing(CacheAccess.prototype, "forget", () => async () => {}),
  violation: /was invalidated, and came back/,
};

const laggingLook: Mistake = {
  what: "a look at the cache that may lag",
  plant: replacing(
    Network.prototype,
    "get",
    (get) =>
      function (this: Network, request, options) {
        const consistent = request.consistent && request.key.sk !== cacheSortKey;
        return get.call(this, { ...request, consistent }, options);
      },
  ),
  violation: /was invalidated, and came back/,
};

const forgetful: Mistake = {
  what: "a process's memory that does not hear of an invalidation",
  plant: replacing(ProcessMemory.prototype, "forget", () => () => undefined),
  violation: /was invalidated, and came back/,
};

const keptByFailure: Mistake = {
  what: "a failure that keeps a value which was invalidated",
  tamper: withoutTests(
    ({ attribute, test, write }) => attribute === "fence" && test === "=" && write.key.sk === cacheSortKey,
  ),
  violation: /was invalidated, and came back|was replaced by one/,
};

const keptWaiting: Mistake = {
  what: "a caller that waits although there is a stale value",
  plant: replacing(Callers.prototype, "serveStale", () => () => {}),
  violation: /waited .* beside a stale value/,
};

const refreshedByStale: Mistake = {
  what: "a stale value for a caller that asks for a refresh",
  plant: replacing(
    Callers.prototype,
    "join",
    (join) =>
      function (this: Callers, terms, signal) {
        return join.call(this, { ...terms, staleOnContention: true }, signal);
      },
  ),
  violation: /was begun before the refresh/,
};

const endlessStale: Mistake = {
  what: "a stale value that is given for ever",
  plant: replacing(
    CacheAccess.prototype,
    "read",
    (read) =>
      async function (this: CacheAccess, ...given) {
        const entry = await read.apply(this, given);
        return entry && { ...entry, staleUntil: Number.POSITIVE_INFINITY };
      },
  ),
  violation: /ms after it was computed/,
};

export const singleFlight = [
  scenario({
    name: "single-flight",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "killed", ...dateFaults],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0)] },
      { process: 1, steps: [call(1, { forceRefresh: true })] },
    ],
    end,
    mistakes: [secondHolder, earlierResult, foreignRelease],
  }),
  scenario({
    name: "single-flight:lost",
    faults: 1,
    kinds: ["answer lost", "answer late", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 4_000 })] },
      { process: 1, steps: [call(1, { computeMs: 2_000, waitMs: 12_000 })] },
    ],
    end,
    mistakes: [hastyExpiry, longBelief],
  }),
  scenario({
    name: "single-flight:invalidated",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "read lags", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0)] },
      { process: 1, steps: [wait(500), invalidate(1), call(1)] },
    ],
    end,
    mistakes: [weakMark, noMark],
  }),
  scenario({
    name: "single-flight:forgotten",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "read lags", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 })] },
      // Later than the lag of a read, and while the value is fresh.
      { process: 1, steps: [wait(2_050), invalidate(1), call(1)] },
    ],
    end,
    mistakes: [laggingLook],
  }),
  scenario({
    name: "single-flight:failing",
    faults: 1,
    kinds: ["answer lost", "sent twice", "killed"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(4_000), call(0, { fails: true })] },
      { process: 1, steps: [wait(4_500), invalidate(1), wait(600), call(1)] },
    ],
    end,
    mistakes: [keptByFailure],
  }),
  scenario({
    name: "single-flight:stale",
    faults: 1,
    kinds: ["request lost", "request late", "answer lost", "sent twice", "killed"],
    make: make(2, 2_800),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(5_550), call(0, { computeMs: 4_500 })] },
      { process: 1, steps: [wait(5_600), call(1), call(1, { forceRefresh: true })] },
    ],
    end,
    mistakes: [keptWaiting, refreshedByStale],
  }),
  scenario({
    // Each process keeps a value for 2 s, and refreshes it 2.5 s ahead.
    name: "single-flight:ahead",
    faults: 1,
    kinds: ["request late", "answer lost", "sent twice", "killed", "frozen"],
    make: make(2, undefined, true),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(2_000), call(0), wait(300), call(0)] },
      { process: 1, steps: [wait(2_400), call(1), invalidate(1), call(1)] },
    ],
    end,
    mistakes: [weakMark, noMark, forgetful],
  }),
  scenario({
    name: "single-flight:stale-over",
    faults: 1,
    kinds: ["request late", "answer lost", "answer late", "killed", "frozen"],
    make: make(2),
    lanes: [
      { process: 0, steps: [call(0, { computeMs: 0 }), wait(10_500), call(0, { computeMs: 2_000 })] },
      { process: 1, steps: [wait(11_000), call(1)] },
    ],
    end,
    mistakes: [endlessStale],
  }),
];
