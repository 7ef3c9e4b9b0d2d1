/** What the calls of a single flight send. */
import { SingleFlight, type SingleFlightOptions } from "@leasehold/client/single-flight";
import {
  during,
  held,
  hourMs,
  type OperationSite,
  type Promised,
  promised,
  type StoppedProcess,
} from "./promised.ts";

const options = { freshForMs: 60_000, staleForMs: 2 * hourMs } as const;
const compute = async (): Promise<string> => "value";
const waitMs = 10_000;

/** Has a value computed that never ends, in a process that stands still: its lock stays held there. */
async function computing(
  process: StoppedProcess,
  key: string,
  more?: Partial<SingleFlightOptions>,
): Promise<void> {
  const flight = new SingleFlight(process.client(), { ...options, ...more });
  void flight.getOrCompute(key, { compute: () => new Promise(() => undefined) });
  await process.settle();
}

/** Has a value computed an hour ago. */
async function computedAnHourAgo({ stopped }: OperationSite, key: string): Promise<void> {
  await new SingleFlight(stopped(hourMs).client(), options).getOrCompute(key, { compute });
}

/** A process that has a value 10 s before its end, and refreshes 20 s ahead. */
async function nearItsEnd({ stopped }: OperationSite, key: string, more?: Partial<SingleFlightOptions>) {
  const process = stopped();
  const values = new SingleFlight(process.client(), { ...options, refreshAheadMs: 20_000, ...more });
  await values.getOrCompute(key, { compute });
  await process.advance(options.freshForMs - 10_000);
  return { process, values };
}

export const singleFlight: readonly Promised[] = [
  promised(
    "a missing value",
    "2 GetItem, 3 UpdateItem",
    (site, key) => () => new SingleFlight(site.client(), options).getOrCompute(key, { compute }),
  ),
  promised("a hit", "1 GetItem", async (site, key) => {
    await new SingleFlight(site.client(), options).getOrCompute(key, { compute });
    return () => new SingleFlight(site.client(), options).getOrCompute(key, { compute });
  }),
  promised("invalidate", "1 GetItem, 1 UpdateItem", async (site, key) => {
    const values = new SingleFlight(site.client(), options);
    await values.getOrCompute(key, { compute });
    return () => values.invalidate(key);
  }),
  promised("a hit, by 10 callers at once", "1 GetItem", async (site, key) => {
    await new SingleFlight(site.client(), options).getOrCompute(key, { compute });
    const values = new SingleFlight(site.client(), options);
    return () => Promise.all(Array.from({ length: 10 }, () => values.getOrCompute(key, { compute })));
  }),
  promised(
    "1,000 calls for a value in the process's memory (`inProcessForMs`)",
    "none",
    async (site, key) => {
      const values = new SingleFlight(site.client(), { ...options, inProcessForMs: 60_000 });
      await values.getOrCompute(key, { compute });
      return async () => {
        for (let call = 0; call < 1_000; call += 1) await values.getOrCompute(key, { compute });
      };
    },
  ),
  ...[0, options.freshForMs].map((inProcessForMs) =>
    promised(
      `a hit that is refreshed ahead${inProcessForMs > 0 ? ", from the process's memory" : ""}`,
      "1 GetItem, 3 UpdateItem",
      async (site, key) => {
        const { process, values } = await nearItsEnd(site, key, { inProcessForMs });
        return async () => {
          await values.getOrCompute(key, { compute });
          await process.settle();
        };
      },
    ),
  ),
  promised("10 hits while another process refreshes ahead", "10 GetItem, 1 UpdateItem", async (site, key) => {
    const { process, values } = await nearItsEnd(site, key, held);
    void values.getOrCompute(key, { compute: () => new Promise<string>(() => undefined) });
    await process.settle();
    const other = new SingleFlight(process.client(), { ...options, refreshAheadMs: 20_000 });
    return async () => {
      for (let call = 0; call < 10; call += 1) {
        await other.getOrCompute(key, { compute });
        await process.settle();
      }
    };
  }),
  promised("a missing value, by 10 callers at once", "2 GetItem, 3 UpdateItem", async (site, key) => {
    const values = new SingleFlight(site.client(), options);
    return () => Promise.all(Array.from({ length: 10 }, () => values.getOrCompute(key, { compute })));
  }),
  promised("a value too old", "1 GetItem, 3 UpdateItem", async (site, key) => {
    await computedAnHourAgo(site, key);
    return () => new SingleFlight(site.client(), options).getOrCompute(key, { compute });
  }),
  promised("a stale value while another process computes", "1 GetItem, 1 UpdateItem", async (site, key) => {
    await computedAnHourAgo(site, key);
    await computing(site.stopped(), key, held);
    return () => new SingleFlight(site.client(), options).getOrCompute(key, { compute });
  }),
  promised(
    "wait 10 s while another process computes",
    "1 GetItem, 5 Query, 1 UpdateItem",
    [1, 6],
    async (site, key) => {
      await computing(site.stopped(), key, held);
      const waiter = site.stopped();
      const values = new SingleFlight(waiter.client(), options);
      return during(waiter, waitMs, () => values.getOrCompute(key, { compute, waitMs }));
    },
  ),
  promised("compute in a dead process's place", "2 GetItem, 4 UpdateItem", async (site, key) => {
    await computing(site.stopped(hourMs), key);
    return () => new SingleFlight(site.client(), options).getOrCompute(key, { compute });
  }),
  promised(
    "invalidate a key without a lock",
    "2 GetItem, 1 UpdateItem",
    (site, key) => () => new SingleFlight(site.client(), options).invalidate(key),
  ),
  promised("a computation that fails, an older value stays", "1 GetItem, 3 UpdateItem", async (site, key) => {
    await computedAnHourAgo(site, key);
    const values = new SingleFlight(site.client(), { ...options, failureForMs: 60_000 });
    return () =>
      values
        .getOrCompute(key, { compute: () => Promise.reject(new Error("no answer")) })
        .catch(() => undefined);
  }),
  promised("another cache: a missing value", "2 UpdateItem", async (site, key) => {
    const values = new SingleFlight(site.client(), { ...options, cache: new Map() });
    return () => values.getOrCompute(key, { compute });
  }),
  promised("another cache: a hit", "none", async (site, key) => {
    const values = new SingleFlight(site.client(), { ...options, cache: new Map() });
    await values.getOrCompute(key, { compute });
    return () => values.getOrCompute(key, { compute });
  }),
  promised("another cache: wait 10 s", "5 GetItem, 1 UpdateItem", [1, 2.5], async (site, key) => {
    await computing(site.stopped(), key, { ...held, cache: new Map() });
    const waiter = site.stopped();
    const values = new SingleFlight(waiter.client(), { ...options, cache: new Map() });
    return during(waiter, waitMs, () => values.getOrCompute(key, { compute, waitMs }));
  }),
  promised("another cache: invalidate", "1 GetItem", async (site, key) => {
    const values = new SingleFlight(site.client(), { ...options, cache: new Map() });
    await values.getOrCompute(key, { compute });
    return () => values.invalidate(key);
  }),
];
