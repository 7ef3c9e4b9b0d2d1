/**
 * A cycle: a free lock is taken and given back. What it takes, in turns with all others; what it sends, and by what the engine says,
 * what that consumed: by a proxy between the two.
 */
import { anyRequest, type Behaviour } from "../../../test/support/proxy.ts";
import { listedRequests } from "../operations/metered.ts";
import { type Contestant, measureInTurns, ownCpuUs, type Turns } from "../turns.ts";
import {
  behindProxy,
  type Contender,
  type LockClient,
  type Place,
  type ProxiedPlace,
  placeAt,
  type Site,
} from "./contender.ts";
import type { PeerResults, WireCost } from "./results.ts";

/** Takes locks that are free, and gives them back. */
class Cycles {
  readonly #contender: Contender;
  readonly #client: LockClient;
  #taken = 0;

  constructor(contender: Contender, place: Place) {
    this.#contender = contender;
    this.#client = contender.open(place, { leaseDurationMs: 30_000 });
  }

  /** What its client's process has used of the processor since its start, in microseconds. */
  async cpuUs(): Promise<number> {
    const { runsIn } = this.#client;
    return runsIn === undefined ? await ownCpuUs() : (await runsIn.used()).cpuUs;
  }

  /** Takes the lock of this key, and gives it back. What one contender leaves in the table would stop another one. */
  async run(key: string): Promise<void> {
    this.#taken += 1;
    const { id, usesKeysOnce } = this.#contender;
    const lock = await this.#client.acquire(`${id}/${key}${usesKeysOnce ? `#${this.#taken}` : ""}`);
    await lock.release();
  }
}

/** Measures the cycles of all contenders. */
export async function measureCycles(
  contenders: readonly Contender[],
  site: Site,
  turns: Turns,
): Promise<PeerResults["cycles"]> {
  const places: Place[] = [];
  const contestants = contenders.map((contender): Contestant => {
    const place = placeAt(site);
    places.push(place);
    const cycles = new Cycles(contender, place);
    return {
      name: contender.name,
      cycle: () => cycles.run(`cycle-${contender.id}`),
      cpuUs: () => cycles.cpuUs(),
    };
  });
  const measured = await measureInTurns(contestants, turns);
  for (const { dynamodb } of places) dynamodb.destroy();
  return measured.map((times, index) => ({ id: contenders[index]?.id ?? "", ...times }));
}

/** Cycles before the one that counts: the first one of a key may be another one than the rest. */
const warmUpCycles = 2;

/** Counts one cycle of each contender. */
export async function countWire(contenders: readonly Contender[], site: Site): Promise<WireCost[]> {
  const costs: WireCost[] = [];
  for (const contender of contenders)
    costs.push(await behindProxy(site, (place) => countCycle(contender, place)));
  return costs;
}

async function countCycle(contender: Contender, place: ProxiedPlace): Promise<WireCost> {
  const cycles = new Cycles(contender, place);
  for (let cycle = 0; cycle < warmUpCycles; cycle += 1) await cycles.run("wire");
  place.proxy.reset();
  const units = { read: 0, write: 0 };
  const askForCapacity: Behaviour = async (exchange) => {
    const { operation, body } = exchange.request;
    const answer = await exchange.forward({ ...body, ReturnConsumedCapacity: "TOTAL" });
    units[operation === "GetItem" ? "read" : "write"] += billedUnits(JSON.parse(answer.body));
    exchange.reply(answer);
  };
  place.proxy.always(anyRequest, askForCapacity);
  await cycles.run("wire");
  return {
    id: contender.id,
    requests: place.proxy.operations.length,
    sent: listedRequests(place.proxy.operations),
    readUnits: units.read,
    writeUnits: units.write,
  };
}

/**
 * What DynamoDB bills for a write, or for a consistent read: what the engine says, and at least one unit. An engine on this machine
 * may say less of an item that is not there, and DynamoDB does not.
 */
export function billedUnits(answer: {
  readonly ConsumedCapacity?: { readonly CapacityUnits?: number };
}): number {
  return Math.max(1, answer.ConsumedCapacity?.CapacityUnits ?? 0);
}
