import { expect, it } from "vitest";
import { bundlePlayer, Players } from "./players.ts";
import { lock } from "./primitives/lock.ts";
import { simulate } from "./simulation.ts";
import { addTo, type Tally } from "./world.ts";

const player = await bundlePlayer();

it("threads see in the same seeds what one that tells the story sees", async () => {
  const [first, count] = [1, 12];
  const tally: Tally = {};
  let virtualMs = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const outcome = await simulate(lock, seed);
    addTo(tally, outcome.tally);
    virtualMs += outcome.virtualMs;
  }
  const seen: number[] = [];
  const players = new Players({ first, count }, (worlds) => seen.push(worlds));
  const played = await players.play(player, { name: lock.name }, 2);
  expect(played).toMatchObject({ worlds: count, wrong: undefined, tally });
  // Threads add up in an order of their own.
  expect(played.virtualMs).toBeCloseTo(virtualMs, 3);
  expect(seen.at(-1)).toBe(count);
});

it("a thread that fails names the seeds that it was playing", async () => {
  const players = new Players({ first: 7, count: 10 }, () => undefined);
  await expect(players.play(player, { name: "no such simulation" }, 1)).rejects.toThrow(
    "one of the seeds 7 to 16: no simulation has the name no such simulation",
  );
});
