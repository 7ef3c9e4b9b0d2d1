import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Item } from "@leasehold/client";
import { beforeAll, describe, expect, it } from "vitest";
import { bundleLastRelease, missingHistory, type ReleaseBundle } from "../support/last-release.ts";
import { upgrades } from "../worlds/primitives/index.ts";
import { besideRelease, present, type Release } from "../worlds/release.ts";
import { tellViolation } from "../worlds/report.ts";
import { simulate } from "../worlds/simulation.ts";
import { addTo, type Tally } from "../worlds/world.ts";
import { expectedUse, itemsWrittenBy, useOf } from "./table-of-all.ts";

const folder = join(import.meta.dirname, "items");
const files = await readdir(folder);

it.each(files)("the packages of now use the items of %s", async (file) => {
  const items = JSON.parse(await readFile(join(folder, file), "utf8")) as readonly Item[];
  expect(await useOf(present, items)).toEqual(expectedUse);
});

it("the packages of now use their own items", async () => {
  expect(await useOf(present, await itemsWrittenBy(present))).toEqual(expectedUse);
});

describe.skipIf(missingHistory)("beside the last release", { tags: ["long"] }, () => {
  const worlds = 30;
  let bundle: ReleaseBundle;
  let last: Release;

  beforeAll(async () => {
    bundle = await bundleLastRelease();
    [, last = present] = besideRelease(bundle).releases;
  });

  it("whose items are kept, for every later release to read, where no earlier one has written the same", async () => {
    const items = `${JSON.stringify(await itemsWrittenBy(last), undefined, 2)}\n`;
    const kept = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
    if (!kept.includes(items))
      await expect(items).toMatchFileSnapshot(join(folder, `${bundle.version}.json`));
  });

  it("which uses the items of now, where a program is rolled back", async () => {
    expect(await useOf(last, await itemsWrittenBy(present))).toEqual(expectedUse);
  });

  it.each(upgrades)(
    `${worlds} worlds of $name hold, with hosts rolled forward and back`,
    async (simulation) => {
      const tally: Tally = {};
      for (let seed = 1; seed <= worlds; seed += 1) {
        const outcome = await simulate(simulation, seed, undefined, besideRelease(bundle));
        if (outcome.violation !== undefined) expect.fail(`\n${tellViolation(outcome, " --last-release")}`);
        addTo(tally, outcome.tally);
      }
      expect(tally["rolled forward"], JSON.stringify(tally)).toBeGreaterThan(0);
      expect(tally["rolled back"], JSON.stringify(tally)).toBeGreaterThan(0);
    },
  );
});
