import { freshForVariable } from "../../../../functions/resource-cache/schema.ts";
import type { StockLevels } from "../../../../functions/resource-cache/stock-levels.ts";
import type { Tempo } from "../../tempo.ts";
import type { Round } from "./evidence.ts";

/** How long a value is good, where nothing is stretched. The app's is a minute. */
export const plannedFreshForMs = 4_000;

/** What the functions are told of it. */
export function stockSettings(tempo: Tempo): Readonly<Record<string, string>> {
  return { [freshForVariable]: String(tempo.ms(plannedFreshForMs)) };
}

/** The warehouse whose levels everybody wants. */
export const warehouse = "north";

/** How many ask at once in each round. */
export const callersAtOnce: Readonly<Record<Round, number>> = {
  cold: 12,
  killed: 4,
  bereaved: 4,
  // The next caller would find the new value, or the lock just released.
  recovered: 1,
  afterwards: 4,
};

/** Goods that came in, or went out. */
export interface Movement {
  readonly product: string;
  readonly quantity: number;
}

/** What has moved before each round. */
export const movementsBefore: Partial<Record<Round, readonly Movement[]>> = {
  cold: [
    { product: "mug", quantity: 20 },
    { product: "lamp", quantity: 30 },
    { product: "mug", quantity: -8 },
  ],
  killed: [{ product: "mug", quantity: 5 }],
  recovered: [{ product: "lamp", quantity: -3 }],
};

/** What the movements of some rounds add up to. */
export function levelsAfter(rounds: readonly Round[]): StockLevels {
  const levels: Record<string, number> = {};
  for (const { product, quantity } of rounds.flatMap((round) => movementsBefore[round] ?? []))
    levels[product] = (levels[product] ?? 0) + quantity;
  return levels;
}

/** As people read it. */
export function described(levels: StockLevels): string {
  return Object.entries(levels)
    .map(([product, quantity]) => `${quantity} ${product}s`)
    .join(", ");
}
