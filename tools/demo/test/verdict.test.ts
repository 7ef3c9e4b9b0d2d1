import { PassThrough } from "node:stream";
import type { InvokeResult } from "@leasehold/local";
import { describe, expect, it } from "vitest";
import { exitCodes } from "../command-line.ts";
import { failureIn } from "../instances.ts";
import { type Check, check, promise, type System } from "../scenario.ts";
import { Screen } from "../screen.ts";
import { type SystemOutcome, tellVerdict, verdictOn } from "../verdict.ts";

const right = [check("runs", 8, 8), promise("overlaps", 0, 0)];
const missed = [check("runs", 8, 7), promise("overlaps", 0, 0)];
const broken = [check("runs", 8, 8), promise("overlaps", 0, 1)];
const late = ["a lease of A ran out while it was alive"];

function outcome(system: System, checks: readonly Check[], reasons: readonly string[] = []): SystemOutcome {
  return { system, checks, late: reasons, inShort: `${system} in short` };
}

/** What is printed, and the exit code. */
function told(outcomes: readonly SystemOutcome[], showsAll = false): { text: string; code: number } {
  const output = new PassThrough();
  const code = tellVerdict(new Screen(output, showsAll), outcomes, showsAll);
  return { text: String(output.read()), code };
}

describe("the verdict", () => {
  it.each([
    ["holds where every check holds", [outcome("orders", right)], "holds"],
    [
      "holds where something was late and every check holds all the same",
      [outcome("orders", right, late)],
      "holds",
    ],
    ["is a failure where a check is wrong and nothing was late", [outcome("orders", missed)], "failed"],
    ["is no failure where the plan could not be kept", [outcome("orders", missed, late)], "tooSlow"],
    [
      "is a failure where a promise was broken, however late things were",
      [outcome("orders", broken, late)],
      "failed",
    ],
    [
      "is a failure where another system's plan could not be kept",
      [outcome("orders", missed), outcome("tasks", right, late)],
      "failed",
    ],
    [
      "is no failure where a system could not be played to its end",
      [outcome("orders", right), outcome("tasks", [], late)],
      "tooSlow",
    ],
  ] as const)("%s", (_, outcomes, verdict) => {
    expect(verdictOn(outcomes)).toBe(verdict);
  });

  it("has an exit code of its own for each way to end", () => {
    expect(new Set(Object.values(exitCodes)).size).toBe(3);
    expect(told([outcome("orders", right)]).code).toBe(0);
    expect(told([outcome("orders", missed)]).code).toBe(1);
    expect(told([outcome("orders", missed, late)]).code).toBe(75);
  });

  it("ends with a line for each system and the number of checks that hold", () => {
    const { text } = told([outcome("orders", right), outcome("imports", right)]);
    expect(text).toContain("  ✓ orders   orders in short\n  ✓ imports  imports in short\n\n4 checks hold.\n");
    expect(text).not.toContain("overlaps");
  });

  it("shows every check where everything is asked for, and those that failed where they did", () => {
    expect(told([outcome("orders", right)], true).text).toContain("✓ orders   runs      8         8\n");
    const { text } = told([outcome("orders", missed), outcome("tasks", right)]);
    expect(text).toContain("✗ orders   runs   8         7\n");
    expect(text).not.toContain("overlaps");
    expect(text).toContain("1 of 4 checks FAILED.");
  });

  it("says what came too late and what to do, and speaks of no failed check, where the machine is too slow", () => {
    const { text } = told([outcome("orders", missed, late), outcome("tasks", right)]);
    expect(text).toContain("✗ orders   the plan could not be kept: a lease of A ran out while it was alive");
    expect(text).toContain("too slow for the plan");
    expect(text).toContain("npm start -- --stretch");
    expect(text).not.toContain("FAILED");
  });

  it("names two of many reasons", () => {
    const { text } = told([outcome("orders", missed, ["first", "second", "third", "fourth"])]);
    expect(text).toContain("the plan could not be kept: first; second; and 2 more like it\n");
  });
});

describe("an invocation without an answer", () => {
  const failed = (errorType: string, errorMessage: string): InvokeResult =>
    ({ payload: { errorType, errorMessage }, functionError: "Unhandled" }) as InvokeResult;

  it.each([
    ["Sandbox.Timedout", "Task timed out after 40.00 seconds", "timedOut"],
    ["TimeoutError", "the request took longer than 2000 ms", "timedOut"],
    ["LeaseServiceError", 'the table "t": no answer (TimeoutError: 2000 ms)', "timedOut"],
    ["LeaseServiceError", 'the table "t": no answer (TimeoutError: no answer within 2000 ms)', "timedOut"],
    ["LeaseServiceError", "DynamoDB refused (AccessDeniedException: not you)", "failed"],
    ["TypeError", "undefined is not a function", "failed"],
    ["Runtime.ExitError", "Runtime exited with error: signal: killed", "died"],
  ])("of the error %s (%s): %s", (type, message, expected) => {
    expect(failureIn(failed(type, message))).toBe(expected);
  });

  it("is no failure where there is one", () => {
    expect(failureIn({ payload: { errorType: "TimeoutError" } } as InvokeResult)).toBeUndefined();
  });
});
