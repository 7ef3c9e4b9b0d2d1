// @module-tag long
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { exitCodes } from "../../tools/demo/command-line.ts";
import {
  type Demonstration,
  demonstrate,
  expectNothingLeft,
  demonstrationTimeout as timeout,
} from "../support/demonstration.ts";

async function until(demonstration: Demonstration, text: string): Promise<void> {
  while (!demonstration.output().includes(text)) {
    const { child } = demonstration;
    if (child.exitCode !== null || child.stdout === null)
      throw new Error(`ended:\n${demonstration.output()}`);
    await once(child.stdout, "data");
  }
}

describe("npm start", () => {
  it("claims no failed check where it had no time for its plan, and says what to do", {
    timeout,
  }, async () => {
    const demonstration = demonstrate(["--stretch", "1"]);
    await until(demonstration, "SILENT");
    // Far longer than a ticket may be silent, and than the leases of the workflow and the job.
    demonstration.child.kill("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    demonstration.child.kill("SIGCONT");

    const exitCode = await demonstration.exitCode;
    expect(exitCode, demonstration.output()).toBe(exitCodes.tooSlow);
    // It is told at the end, or the plan does not come to its end.
    expect(demonstration.output()).toMatch(/the plan (could not be kept|was not over after)/);
    expect(demonstration.output()).toContain("npm start -- --stretch");
    // An incident may say that a call has failed; no check may.
    expect(demonstration.output()).not.toContain("checks FAILED");
  });

  describe("leaves no process and no folder", () => {
    it.each([
      ["Ctrl-C while it loads", "Loading", "SIGINT", 130],
      ["Ctrl-C while it measures the machine", "Measuring", "SIGINT", 130],
      ["Ctrl-C while DynamoDB starts", "Starting DynamoDB ...", "SIGINT", 130],
      ["SIGTERM while the app is synthesized and bundled", "Bundling the functions", "SIGTERM", 143],
      ["a closed terminal while the app starts", "Starting the app ...", "SIGHUP", 129],
      ["Ctrl-C in mid-play, with frozen instances", "SIGSTOP", "SIGINT", 130],
    ] as const)("after %s", { timeout }, async (_, moment, signal, exitCode) => {
      const demonstration = demonstrate();
      await until(demonstration, moment);
      demonstration.tree.look();
      expect(demonstration.output()).not.toContain("\u001b");
      expect(demonstration.output()).not.toContain("✓ ran");
      demonstration.child.kill(signal);
      const looks = setInterval(() => demonstration.tree.look(), 100);
      const code = await demonstration.exitCode;
      clearInterval(looks);

      expect(code).toBe(exitCode);
      expect(demonstration.output()).toMatch(new RegExp(`\nEnded by ${signal}\\.\n$`));
      await expectNothingLeft(demonstration);
    });

    it("after a reader that goes away", { timeout }, async () => {
      const demonstration = demonstrate();
      await until(demonstration, "Bundling the functions");
      demonstration.tree.look();
      demonstration.child.stdout?.destroy();

      expect(await demonstration.exitCode).toBe(141);
      await expectNothingLeft(demonstration);
    });
  });

  it("names an endpoint where no DynamoDB answers, before it does anything else", { timeout }, async () => {
    const demonstration = demonstrate([], { DYNAMODB_ENDPOINT: "http://127.0.0.1:1" });

    expect(await demonstration.exitCode).toBe(exitCodes.failed);
    expect(demonstration.output()).toContain(
      "DYNAMODB_ENDPOINT is http://127.0.0.1:1, and no DynamoDB answers there",
    );
    expect(demonstration.output()).not.toContain("Synthesizing");
    await expectNothingLeft(demonstration);
  });
});
