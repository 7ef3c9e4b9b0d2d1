/** What a function that takes a lock brings in its bundle, and what its start takes, in processes of their own. */
import { type Bundle, bundle } from "../bundles.ts";
import { benchStarts } from "../starts.ts";
import type { BundleCost } from "./results.ts";

const own = { folder: "tools/bench/handlers" };
const others = { folder: "tools/bench/peers/handlers" };

/** The handler of each contender that has one of its own. */
const handlers: Readonly<Record<string, () => Promise<Bundle>>> = {
  floor: () => bundle("bare-writes", others),
  leasehold: () => bundle("client", own),
  "leasehold-light": () => bundle("client-light", own),
  "lock-client": () => bundle("lock-client", { ...others, needsRequire: true }),
  idempotency: () => bundle("idempotency", others),
};

/** Bundles them, and starts each so many times, in turns. */
export async function measureBundles(starts: number): Promise<BundleCost[]> {
  const bundled = await Promise.all(
    Object.entries(handlers).map(async ([id, make]) => ({ id, bundle: await make() })),
  );
  const [floor] = bundled;
  if (floor === undefined) return [];
  const pairs = bundled.map((one) => ({ bundle: one.bundle, baseline: floor.bundle }));
  const times = await benchStarts(pairs, starts);
  return bundled.map(({ id, bundle: { bytes, gzipBytes } }, index) => ({
    id,
    bytes,
    gzipBytes,
    importCpuMs: times[index]?.importCpuP50 ?? Number.NaN,
    startMs: times[index]?.p50 ?? Number.NaN,
  }));
}
