/** The workload of single flight: values that one process computes at a time. */
import type { SingleFlight } from "@leasehold/client/single-flight";
import { microseconds } from "../history.ts";
import { keys, terms } from "../terms.ts";
import { answering, type WorkContext } from "./context.ts";

/** What a computation gives: it names itself. */
interface Computed {
  readonly value: string;
  readonly fencingToken: number;
}

let computations = 0;

/** Asks for a value, now and then for one that is newer than the call. */
export async function flightTurn(context: WorkContext, flights: SingleFlight): Promise<void> {
  const { random, journal, config } = context;
  const key = random.pick(keys.singleFlight);
  const refresh = random.chance(0.2);
  const since = microseconds();
  const answer = journal.call("singleFlight", "get", key, { refresh });
  await answering(answer, async () => {
    const { value: computed, source } = await flights.getOrComputeWithSource<Computed>(key, {
      forceRefresh: refresh,
      waitMs: terms.waitMs,
      compute: async ({ lease }) => {
        computations += 1;
        const value = `${config.name}:${computations}`;
        const { fencingToken } = lease;
        const computation = journal.call("singleFlight", "compute", key, { value, fencingToken });
        await context.hold(lease, { primitive: "singleFlight", key, fencingToken, since });
        computation("ok");
        return { value, fencingToken };
      },
    });
    answer("ok", { ...computed, source });
  });
}
