/** What a cycle costs as the number of different keys grows: one to ten thousand, sixteen cycles at a time. */
import type { Target } from "../../../test/support/proxy.ts";
import type { Contender } from "./contender.ts";
import { Cycles, placeAt, type Tables } from "./place.ts";
import type { KeysTimes } from "./results.ts";

/** Left out: the floor's second run, and a contender that uses each key once. */
const isCompared = ({ id, usesKeysOnce }: Contender): boolean => id !== "floor-again" && !usesKeysOnce;
const mostAtATime = 16;
const slices = 4;

/** How many keys, and how many cycles over them. */
export interface KeysPlan {
  readonly keys: number;
  readonly cycles: number;
}

/** Measures in turns: a quarter of each contender's cycles after the other. */
export async function measureKeys(
  contenders: readonly Contender[],
  engine: Target,
  tables: Tables,
  plans: readonly KeysPlan[],
): Promise<KeysTimes[]> {
  const compared = contenders.filter(isCompared);
  const places = compared.map(() => placeAt(engine, tables));
  const measured: KeysTimes[] = [];
  for (const { keys, cycles } of plans) {
    const totals = compared.map((contender, index) => ({
      id: contender.id,
      client: new Cycles(contender, places[index] ?? placeAt(engine, tables), { leaseDurationMs: 30_000 }),
      ms: 0,
      cpuUs: 0,
    }));
    for (let slice = 0; slice < slices; slice += 1) {
      for (const total of [...totals.slice(slice), ...totals.slice(0, slice)]) {
        const before = await total.client.cpuUs();
        const startedAt = performance.now();
        await inParallel(Math.min(keys, mostAtATime), cycles / slices, (index) =>
          total.client.run(`key-${keys}-${(slice * (cycles / slices) + index) % keys}`),
        );
        total.ms += performance.now() - startedAt;
        total.cpuUs += (await total.client.cpuUs()) - before;
      }
    }
    for (const { id, ms, cpuUs } of totals) {
      measured.push({ id, keys, cycles, cyclesPerSecond: (1_000 * cycles) / ms, cpuUs: cpuUs / cycles });
    }
  }
  for (const { dynamodb } of places) dynamodb.destroy();
  return measured;
}

/** Runs `count` cycles, so many at a time. */
export async function inParallel(
  atATime: number,
  count: number,
  run: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await run(index);
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
}
