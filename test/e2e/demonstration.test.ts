// @module-tag long
import { expect, it } from "vitest";
import { exitCodes } from "../../tools/demo/command-line.ts";
import {
  type Demonstration,
  demonstrate,
  demonstrationTimeout,
  expectNothingLeft,
} from "../support/demonstration.ts";

/** Where a machine that slows down in mid-play spoils a plan, the next one is stretched. */
const mostAttempts = 3;

/** Plays it to its end, and again with more time where the machine was too slow: that is no failure. */
async function playAll(): Promise<Demonstration> {
  for (let attempt = 1; ; attempt++) {
    const stretch = attempt === 1 ? [] : ["--stretch", String(3 * attempt)];
    const demonstration = demonstrate(["--all", ...stretch]);
    const looks = setInterval(() => demonstration.tree.look(), 2_000);
    const code = await demonstration.exitCode;
    clearInterval(looks);
    await expectNothingLeft(demonstration);
    if (code !== exitCodes.tooSlow || attempt === mostAttempts) return demonstration;
  }
}

it("npm start ends by itself with every check, and prints plain text into a pipe", {
  timeout: demonstrationTimeout,
}, async () => {
  const demonstration = await playAll();
  const output = demonstration.output();

  expect(output).toMatch(/\n\d+ checks hold\.\n$/);
  expect(await demonstration.exitCode).toBe(exitCodes.holds);
  expect(output).not.toContain("\u001b");
  for (const step of ["Measuring", "Synthesizing", "Bundling", "Starting DynamoDB", "Starting the app"]) {
    expect(output).toMatch(new RegExp(`✓ ${step}.* \\d+\\.\\d s`));
  }
  for (const event of ["KILLED", "TAKEOVER", "FROZEN", "WOKEN", "fenced off", "has had its run", "parks"]) {
    expect(output).toContain(event);
  }
  for (const event of ["computed", "the old value", "put back", "worker lost", "REFUSED", "the cleaner"]) {
    expect(output).toContain(event);
  }
  for (const system of ["orders", "imports", "stock", "tasks", "tickets"]) {
    expect(output).toMatch(new RegExp(`\n✓ ${system} `));
    expect(output).toMatch(new RegExp(`\n {2}✓ ${system} `));
  }
  expect(demonstration.tree.seen.length).toBeGreaterThanOrEqual(15);
});
