import { PassThrough } from "node:stream";
import type { InvokeResult } from "@leasehold/local";
import { expect, it } from "vitest";
import { failureIn } from "../instances.ts";
import { type Check, check, promise, type System } from "../scenario.ts";
import { Screen } from "../screen.ts";
import { type SystemOutcome, tellVerdict } from "../verdict.ts";

const right = [check("runs", 8, 8), promise("overlaps", 0, 0)];
const missed = [check("runs", 8, 7), promise("overlaps", 0, 0)];
const broken = [check("runs", 8, 8), promise("overlaps", 0, 1)];
const late = ["a lease of A ran out while it was alive", "second", "third"];

function outcome(system: System, checks: readonly Check[], reasons: readonly string[] = []): SystemOutcome {
  return { system, checks, late: reasons, inShort: `${system} in short` };
}

/** What is printed, and the exit code. */
function told(outcomes: readonly SystemOutcome[], showsAll = false): { text: string; code: number } {
  const output = new PassThrough();
  const code = tellVerdict(new Screen(output, showsAll), outcomes, showsAll);
  return { text: String(output.read()), code };
}

it.each([
  ["0 where every check holds", [outcome("orders", right)], 0],
  ["0 where something was late and every check holds all the same", [outcome("orders", right, late)], 0],
  ["1 where a check is wrong and nothing was late", [outcome("orders", missed)], 1],
  ["75 where the plan could not be kept", [outcome("orders", missed, late)], 75],
  ["1 where a promise was broken, however late things were", [outcome("orders", broken, late)], 1],
  ["1 where another system was late", [outcome("orders", missed), outcome("tasks", right, late)], 1],
  ["75 where a system was not played to its end", [outcome("orders", right), outcome("tasks", [], late)], 75],
] as const)("the exit code is %s", (_, outcomes, code) => {
  expect(told(outcomes).code).toBe(code);
});

it("the verdict has a line for each system and the number of checks that hold; every check where everything is asked for", () => {
  const { text } = told([outcome("orders", right), outcome("imports", right)]);
  expect(text).toContain("  ✓ orders   orders in short\n  ✓ imports  imports in short\n\n4 checks hold.\n");
  expect(text).not.toContain("overlaps");
  expect(told([outcome("orders", right)], true).text).toContain("✓ orders   runs      8         8\n");
});

it("the verdict shows the checks that failed", () => {
  const { text } = told([outcome("orders", missed), outcome("tasks", right)]);
  expect(text).toContain("✗ orders   runs   8         7\n");
  expect(text).not.toContain("overlaps");
  expect(text).toContain("1 of 4 checks FAILED.");
});

it("the verdict says what came too late and what to do, and speaks of no failed check, where the machine is too slow", () => {
  const { text } = told([outcome("orders", missed, late), outcome("tasks", right)]);
  expect(text).toContain(`✗ orders   the plan could not be kept: ${late[0]}; second; and 1 more like it\n`);
  expect(text).toContain("npm start -- --stretch");
  expect(text).not.toContain("FAILED");
});

it.each([
  ["Sandbox.Timedout", "Task timed out after 40.00 seconds", "timedOut"],
  ["TimeoutError", "the request took longer than 2000 ms", "timedOut"],
  ["LeaseServiceError", 'the table "t": no answer (TimeoutError: 2000 ms)', "timedOut"],
  ["LeaseLostError", 'the lease of "job" is lost (expired)', "timedOut"],
  ["LeaseLostError", 'the lease of "job" is lost (superseded)', "failed"],
  ["LeaseServiceError", "DynamoDB refused (AccessDeniedException: not you)", "failed"],
  ["Runtime.ExitError", "Runtime exited with error: signal: killed", "died"],
])("an invocation with the error %s (%s): %s", (errorType, errorMessage, expected) => {
  const result = { payload: { errorType, errorMessage }, functionError: "Unhandled" } as InvokeResult;
  expect(failureIn(result)).toBe(expected);
});
