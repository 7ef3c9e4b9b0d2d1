import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Screen } from "../screen.ts";

const esc = "\u001b";
const sequences = new RegExp(`(${esc}\\[\\d*[AJm]|\\n)`);

/** A terminal, or a pipe. */
function output(isTTY: boolean, columns = 50): PassThrough {
  // The depth is what node:util goes by: 4 bits are sixteen colours.
  return Object.assign(new PassThrough(), isTTY ? { isTTY, columns, getColorDepth: () => 4 } : {});
}

/** What a terminal shows of all that it was given: of escapes it knows the ones that erase lines, and drops colours. */
function shown(text: string): string[] {
  let lines = [""];
  for (const part of text.split(sequences)) {
    if (part === "\n") lines.push("");
    else if (part.endsWith("A") && part.startsWith(esc))
      lines = [...lines.slice(0, -1 - Number(part.slice(2, -1))), ""];
    else if (!part.startsWith(esc)) lines[lines.length - 1] += part;
  }
  return lines.filter((line) => line !== "");
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubEnv("TERM", "xterm");
  vi.stubEnv("NO_COLOR", undefined);
  vi.stubEnv("FORCE_COLOR", undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

it("shows a step from its first moment on a terminal, then one line a system that is rewritten in place, with incidents above", () => {
  const stream = output(true);
  let text = "";
  stream.on("data", (chunk) => {
    text += chunk;
  });
  const screen = new Screen(stream, false);
  const step = screen.step("Synthesizing");
  stream.read();
  expect(shown(text)).toEqual([expect.stringMatching(/Synthesizing +0\.0 s/)]);
  step.tell("7 bundles");
  vi.advanceTimersByTime(3_200);
  stream.read();
  expect(shown(text)).toEqual([expect.stringMatching(/Synthesizing +3\.2 s {2}7 bundles/)]);
  step.done("an assembly");

  screen.begin();
  screen.progress("orders", 1, 10, "tick 2 of 10");
  vi.advanceTimersByTime(100);
  screen.event("orders", "ran", "A", "closed 5 orders");
  screen.event("orders", "killed", "A", "SIGKILL");
  screen.progress("orders", 2, 10, "tick 3 of 10, in a line that is longer than the terminal");
  vi.advanceTimersByTime(100);
  stream.read();
  const before = [
    expect.stringMatching(/✓ Synthesizing +3\.2 s {2}an assembly/),
    expect.stringContaining("what"),
    expect.stringMatching(/0\.10 s {2}orders {3}A {5}✗ KILLED {4}SIGKILL/),
  ];
  expect(shown(text)).toEqual([
    ...before,
    // A line that wraps could not be rewritten.
    expect.stringMatching(/^ {2}orders {3}━━━━─{16} {2}tick 3 of 10, in$/),
    expect.stringContaining("Ctrl-C"),
  ]);
  screen.step("Starting DynamoDB");
  screen.close();
  screen.event("orders", "killed", "A", "SIGKILL");
  vi.advanceTimersByTime(1_000);
  stream.read();
  expect(shown(text)).toEqual([...before, expect.stringContaining("✗ Starting DynamoDB")]);
  expect(text).toContain(`${esc}[31m✗ KILLED`);
});

it.each([
  ["incidents", false, ["TAKEOVER  from A"]],
  ["every event where everything is asked for", true, ["ran       closed 5 orders", "TAKEOVER  from A"]],
])("prints plain lines on a pipe: a step's beginning and end, %s", (_, showsAll, endings) => {
  const stream = output(false);
  const screen = new Screen(stream, showsAll);
  const step = screen.step("Synthesizing");
  vi.advanceTimersByTime(11_000);
  step.done("an assembly");
  screen.begin();
  screen.event("orders", "ran", "A", "closed 5 orders");
  screen.event("orders", "takeover", "B", "from A");
  screen.progress("orders", 1, 10, "tick 2 of 10");
  vi.advanceTimersByTime(16_000);
  const text = String(stream.read());
  expect(text).not.toContain(esc);
  expect(text.split("\n").filter((line) => line !== "")).toEqual([
    "  Synthesizing ...",
    expect.stringMatching(/^ {2}✓ Synthesizing +11\.0 s {2}an assembly$/),
    expect.stringContaining("what"),
    ...endings.map((ending) => expect.stringContaining(ending)),
  ]);
});
