/** Counts what one cycle sends, and asks the engine what that consumed: by a proxy between the two. */
import { anyRequest, type Behaviour } from "../../../test/support/proxy.ts";
import { listedRequests } from "../operations/metered.ts";
import { behindProxy, type Contender, Cycles, type ProxiedPlace, type Site } from "./contender.ts";
import type { WireCost } from "./results.ts";

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
