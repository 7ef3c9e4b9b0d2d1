/**
 * A cycle: a free lock is taken and given back. What it takes, in turns with all others; what it sends, and by what the engine says,
 * what that consumed: by a proxy between the two.
 */
import { anyRequest, type Behaviour } from "../../../test/support/proxy.ts";
import { type Contestant, measureInTurns, type Turns } from "../turns.ts";
import {
  behindProxy,
  type Contender,
  type Place,
  type ProxiedPlace,
  placeAt,
  type Site,
} from "./contender.ts";
import type { PeerResults, WireCost } from "./results.ts";

/** Takes a free lock, and gives it back. What one contender leaves in the table would stop another one. */
function cycleOf({ id, name, open }: Contender, place: Place): Contestant {
  const client = open(place, { leaseDurationMs: 30_000 });
  const cycle = async (): Promise<void> => {
    const lock = await client.acquire(`${id}/cycle`);
    await lock.release();
  };
  const { runsIn } = client;
  return { name, cycle, ...(runsIn && { cpuUs: async () => (await runsIn.used()).cpuUs }) };
}

/** Measures the cycles of all contenders. */
export async function measureCycles(
  contenders: readonly Contender[],
  site: Site,
  turns: Turns,
): Promise<PeerResults["cycles"]> {
  const places: Place[] = [];
  const contestants = contenders.map((contender) => {
    const place = placeAt(site);
    places.push(place);
    return cycleOf(contender, place);
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
  const { cycle } = cycleOf(contender, place);
  for (let count = 0; count < warmUpCycles; count += 1) await cycle();
  place.proxy.reset();
  const units = { read: 0, write: 0 };
  const askForCapacity: Behaviour = async (exchange) => {
    const { operation, body } = exchange.request;
    const answer = await exchange.forward({ ...body, ReturnConsumedCapacity: "TOTAL" });
    units[operation === "GetItem" ? "read" : "write"] += billedUnits(JSON.parse(answer.body));
    exchange.reply(answer);
  };
  place.proxy.always(anyRequest, askForCapacity);
  await cycle();
  return {
    id: contender.id,
    requests: place.proxy.operations.length,
    readUnits: units.read,
    writeUnits: units.write,
  };
}

/**
 * What DynamoDB bills for a write, or for a consistent read: what the engine says, and at least one unit. An engine on this machine
 * may say less of an item that is not there, and DynamoDB does not.
 */
function billedUnits(answer: { readonly ConsumedCapacity?: { readonly CapacityUnits?: number } }): number {
  return Math.max(1, answer.ConsumedCapacity?.CapacityUnits ?? 0);
}
