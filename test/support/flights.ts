/** Where the tests of single flight play: a clock, a table, and what was told of it. All are new for each test. */
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import {
  SingleFlight,
  type SingleFlightEvent,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { ScriptedStore } from "./scripted-store.ts";

export let clock: ManualClock;
export let store: ScriptedStore;
export let events: SingleFlightEvent[];
/** Of the SingleFlight that was made last. */
export let client: LeaseClient;
let tokens = 0;

/** To be called before each test. */
export function renewFlights(): void {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
}

/** Gives what makes a SingleFlight in a process of its own. Chance gives half of what it may. */
export function flightsWith(
  defaults: SingleFlightOptions,
  clientDefaults: Partial<LeaseClientOptions> = { leaseDurationMs: 3_000 },
): (options?: Partial<SingleFlightOptions>, clientOptions?: Partial<LeaseClientOptions>) => SingleFlight {
  const randomness = { token: () => `token ${++tokens}`, fraction: () => 0.5 };
  return (options, clientOptions) => {
    client = new LeaseClient({ store, clock, randomness, ...clientDefaults, ...clientOptions });
    return new SingleFlight(client, { onEvent: (event) => events.push(event), ...defaults, ...options });
  };
}

/** Holds the answer to the next read back. */
export function holdNextRead(): () => void {
  const read = store.get.bind(store);
  const gate = Promise.withResolvers<void>();
  store.get = async (request, options) => {
    store.get = read;
    const item = await read(request, options);
    await gate.promise;
    return item;
  };
  return gate.resolve;
}
