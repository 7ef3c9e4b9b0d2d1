// @module-tag long
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, type TestContext, test } from "vitest";
import { bundleWithLastRelease, missingHistory } from "../support/last-release.ts";
import { primitives } from "../torture/history.ts";
import { installTortured, type TorturedProject, worker } from "../torture/install.ts";
import { plants } from "../torture/plants.ts";
import { type TortureOptions, type TortureResult, torture } from "../torture/run.ts";

const engine = inject("engine");
let project: TorturedProject;

beforeAll(async () => {
  project = await installTortured();
});

afterAll(async () => {
  await project.remove();
});

type Choices = Pick<TortureOptions, "seed" | "durationMs" | "primitives" | "bend"> &
  Partial<Pick<TortureOptions, "workers">>;

async function run({ onTestFailed, onTestFinished }: TestContext, choices: Choices): Promise<TortureResult> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-torture-"));
  let hasFailed = false;
  onTestFailed(() => {
    hasFailed = true;
    console.error("the histories are in", folder);
  });
  onTestFinished(async () => {
    if (!hasFailed) await rm(folder, { recursive: true, force: true });
  });
  return await torture({ engine, workers: [project.worker], folder, processes: 4, ...choices });
}

test("the packed packages keep every rule while their processes are killed, frozen and cut off", async (context) => {
  const { history, violations, tally } = await run(context, { seed: 31, durationMs: 20_000, primitives });
  expect(violations).toEqual([]);
  // A run in which nothing happens shows nothing.
  for (const what of ["kills", "freezes", "answer lost", "copy after the answer"]) {
    expect(tally.get(what), what).toBeGreaterThan(0);
  }
  const used = new Set(history.holds.map(({ primitive }) => primitive));
  expect([...used].sort()).toEqual([...primitives].sort());
});

test("processes of the last release and of now keep every rule together", async (context) => {
  context.skip(missingHistory !== undefined, missingHistory);
  const last = await bundleWithLastRelease(worker);
  const choices = { seed: 5, durationMs: 20_000, primitives, workers: [project.worker, last.file] } as const;
  const { history, violations } = await run(context, choices);
  expect(violations).toEqual([]);
  const used = new Set(history.holds.map(({ primitive }) => primitive));
  expect([...used].sort()).toEqual([...primitives].sort());
});

// Side by side, for each takes a quarter of a minute of real time, and most of that is waiting.
describe.concurrent("a planted mistake is found", () => {
  const attempts = 3;

  test.for(plants.map((plant) => [plant.what, plant] as const))(
    "%s",
    async ([, { primitive, bend, breaks }], context) => {
      for (let seed = 1; seed <= attempts; seed += 1) {
        const { violations } = await run(context, {
          seed,
          durationMs: 15_000,
          primitives: [primitive],
          bend,
        });
        // A busy machine breaks rules of its own: a process that does not end in time.
        if (violations.some(({ rule }) => breaks.includes(rule))) return;
      }
      context.expect.fail(`not found in ${attempts} runs`);
    },
  );
});
