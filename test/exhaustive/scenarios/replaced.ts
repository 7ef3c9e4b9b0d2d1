/** Invocations of a function of which each newer trigger replaces the older one. */
import { type LeaseClient, LeaseError, LeaseUnavailableError } from "@leasehold/client";
import { type Lock, leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { Core } from "../../../packages/client/src/core/core.ts";
import { Cluster, type Running } from "../../worlds/cluster.ts";
import { type Mistake, type Planted, replacing } from "../../worlds/simulation.ts";
import type { World } from "../../worlds/world.ts";
import { scenario, wait } from "../scenario.ts";

/** An invocation by the trigger of a minute, which works for as long as nobody stops it, or for `worksMs`. */
interface Invocation {
  readonly kind: "invoke";
  readonly process: number;
  readonly minute: number;
  readonly worksMs: number;
}

interface Work {
  readonly minute: number;
  readonly lock: Lock;
}

const invocationMs = 120_000;
/** A holder hears of a request to stop at its next heartbeat, every 10 s. A release that fails leaves a lease of 30 s. */
const replacedMs = 60_000;

/** Environments of one function, each with a client of its own. */
export class Replaced {
  readonly world: Cluster<{ readonly client: LeaseClient }>;
  readonly #working = new Set<Work>();

  constructor(world: World, { tamper }: Planted) {
    this.world = new Cluster(world, { processes: 2, tamper, begin: (client) => ({ client }) });
  }

  async take({ process, minute, worksMs }: Invocation): Promise<void> {
    const running = this.world.processes[process];
    if (running !== undefined) this.#invoke(running, minute, worksMs);
    await this.world.clock.advance(0);
  }

  #invoke(running: Running<{ readonly client: LeaseClient }>, minute: number, worksMs: number): void {
    const { process: clock, parts } = running;
    const { world } = this;
    const startedAt = world.clock.monotonic();
    const options = { client: parts.client, clock, key: "job", whenHeld: "replace", metrics: false } as const;
    const handler = leased<object, string>(options, async (_event, _context, lock) => {
      const waitedMs = world.clock.monotonic() - startedAt;
      if (waitedMs > replacedMs) world.fault(`minute ${minute} has replaced its holder after ${waitedMs} ms`);
      const beside = [...this.#working].find((other) => other.lock.lease?.held);
      if (beside !== undefined) world.fault(`minute ${minute} works beside minute ${beside.minute}`);
      const work = { minute, lock };
      this.#working.add(work);
      const { promise, resolve } = Promise.withResolvers<void>();
      lock.signal.addEventListener("abort", () => resolve(), { once: true });
      clock.schedule(resolve, worksMs);
      await promise;
      this.#working.delete(work);
      return `minute ${minute}`;
    });
    const endsAt = clock.monotonic() + invocationMs;
    const context = {
      functionName: "job",
      awsRequestId: clock.name,
      getRemainingTimeInMillis: () => Math.max(0, Math.floor(endsAt - clock.monotonic())),
    } as Context;
    const event = { time: new Date(Date.UTC(2025, 11, 31, 0, minute)).toISOString() };
    const isExpected = (error: unknown): boolean => {
      if (error instanceof LeaseUnavailableError) world.fault(`minute ${minute} has replaced nobody`);
      return error instanceof LeaseError;
    };
    world.watch(running, handler(event, context), () => undefined, isExpected);
  }
}

const invoke = (process: number, minute: number, worksMs: number): Invocation => ({
  kind: "invoke",
  process,
  minute,
  worksMs,
});

const askedNobody: Mistake = {
  what: "a holder that counts as asked although the request to stop has failed",
  plant: replacing(
    Core.prototype,
    "update",
    (update) =>
      async function (this: Core, write, budget) {
        const sent = update.call(this, write, budget);
        if (!(":revocation" in write.values)) return await sent;
        return await sent.catch(() => ({ applied: false, item: undefined, retried: false }));
      },
  ),
  violation: /has replaced nobody/,
};

export const replaced = [
  scenario({
    name: "function:replaced",
    faults: 1,
    kinds: ["throttled", "request lost", "answer lost", "answer late"],
    make: (world, planted) => new Replaced(world, planted),
    lanes: [
      { process: 0, steps: [invoke(0, 1, 100_000)] },
      { process: 1, steps: [wait(2_000), invoke(1, 2, 1_000)] },
    ],
    mistakes: [askedNobody],
  }),
];
