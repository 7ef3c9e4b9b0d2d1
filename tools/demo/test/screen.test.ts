import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Screen } from "../screen.ts";

const esc = "\u001b";
const sequences = new RegExp(`(${esc}\\[\\d*[AJm]|\\n)`);

/** A terminal, or a pipe. */
function output(isTTY: boolean, columns = 80): PassThrough {
  // The depth is what node:util goes by: 4 bits are sixteen colours.
  const getColorDepth = (): number => (process.env.NO_COLOR === undefined ? 4 : 1);
  return Object.assign(new PassThrough(), isTTY ? { isTTY, columns, getColorDepth } : {});
}

/** What has been written since the last look. */
function written(stream: PassThrough): string {
  return String(stream.read() ?? "");
}

/** What a terminal shows after it was given a text: of escapes it knows the ones that erase lines, and drops colours. */
function shown(text: string): string[] {
  let lines = [""];
  for (const part of text.split(sequences)) {
    if (part === "\n") lines.push("");
    else if (part.endsWith("A") && part.startsWith(esc))
      lines = [...lines.slice(0, -1 - Number(part.slice(2, -1))), ""];
    else if (!part.startsWith(esc)) lines[lines.length - 1] += part;
  }
  return lines;
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

describe("the screen on a terminal", () => {
  it("shows a step from its first moment, with the time that it takes", () => {
    const stream = output(true);
    const screen = new Screen(stream, false);
    const step = screen.step("Synthesizing");
    let text = written(stream);
    expect(shown(text).at(-2)).toMatch(/Synthesizing +0\.0 s/);
    step.tell("7 bundles");
    vi.advanceTimersByTime(3_200);
    text += written(stream);
    expect(shown(text)).toEqual([expect.stringMatching(/Synthesizing +3\.2 s {2}7 bundles/), ""]);
    step.done("an assembly");
    text += written(stream);
    expect(shown(text)).toEqual([expect.stringMatching(/✓ Synthesizing +3\.2 s {2}an assembly/), ""]);
  });

  it("rewrites one line a system in place, and prints incidents above them", () => {
    const stream = output(true);
    const screen = new Screen(stream, false);
    screen.begin();
    screen.progress("orders", 1, 10, "tick 2 of 10");
    screen.progress("tasks", 30, 60, "30 of 60 are done");
    vi.advanceTimersByTime(100);
    screen.event("orders", "killed", "A", "SIGKILL");
    screen.progress("orders", 2, 10, "tick 3 of 10");
    vi.advanceTimersByTime(100);
    const lines = shown(written(stream)).filter((line) => line !== "");
    expect(lines).toEqual([
      expect.stringContaining("what"),
      expect.stringMatching(/0\.10 s {2}orders {3}A {5}✗ KILLED {4}SIGKILL/),
      expect.stringMatching(/^ {2}orders {3}━━━━─{16} {2}tick 3 of 10$/),
      expect.stringMatching(/^ {2}tasks {4}━{10}─{10} {2}30 of 60 are done$/),
      expect.stringContaining("Ctrl-C"),
    ]);
  });

  it("cuts its living lines where the terminal ends, for a line that wraps could not be rewritten", () => {
    const stream = output(true, 50);
    const screen = new Screen(stream, false);
    screen.begin();
    screen.progress("orders", 1, 10, "a text that is longer than the terminal is wide");
    vi.advanceTimersByTime(100);
    const living = shown(written(stream)).find((line) => line.startsWith("  orders"));
    expect(living).toHaveLength(49);
  });

  it("leaves nothing that would be rewritten, and shows nothing that happens, once it is closed", () => {
    const stream = output(true);
    const screen = new Screen(stream, false);
    screen.begin();
    screen.progress("orders", 1, 10, "tick 2 of 10");
    vi.advanceTimersByTime(100);
    screen.close();
    screen.event("orders", "killed", "A", "SIGKILL");
    vi.advanceTimersByTime(1_000);
    const text = shown(written(stream)).join("\n");
    expect(text).not.toContain("tick 2 of 10");
    expect(text).not.toContain("SIGKILL");
  });

  it("marks a step that did not come to its end", () => {
    const stream = output(true);
    const screen = new Screen(stream, false);
    screen.step("Starting DynamoDB");
    screen.close();
    expect(shown(written(stream))[0]).toContain("✗ Starting DynamoDB");
  });

  it("is coloured, unless NO_COLOR is set, which leaves the living lines as they are", () => {
    const stream = output(true);
    new Screen(stream, false).title("Leasehold");
    expect(written(stream)).toContain(`${esc}[1mLeasehold`);
    vi.stubEnv("NO_COLOR", "1");
    const screen = new Screen(stream, false);
    screen.title("Leasehold");
    expect(written(stream)).toBe("Leasehold\n");
    screen.begin();
    screen.progress("orders", 1, 10, "tick 2 of 10");
    vi.advanceTimersByTime(200);
    expect(written(stream)).toContain(`${esc}[3A${esc}[J`);
  });
});

describe("the screen on a pipe", () => {
  it("prints plain lines and no escape: a step's beginning and end, incidents, and progress now and then", () => {
    const stream = output(false);
    const screen = new Screen(stream, false);
    const step = screen.step("Synthesizing");
    vi.advanceTimersByTime(11_000);
    step.done("an assembly");
    screen.begin();
    screen.event("orders", "ran", "A", "closed 5 orders");
    screen.event("orders", "takeover", "B", "from A");
    screen.progress("orders", 1, 10, "tick 2 of 10");
    vi.advanceTimersByTime(16_000);
    const text = written(stream);
    expect(text).not.toContain(esc);
    expect(text.split("\n").filter((line) => line !== "")).toEqual([
      "  Synthesizing ...",
      expect.stringMatching(/^ {2}Synthesizing \.\.\. 10\.\d s/),
      expect.stringMatching(/^ {2}✓ Synthesizing +11\.0 s {2}an assembly$/),
      expect.stringContaining("what"),
      expect.stringMatching(/^ {2}0\.00 s {2}orders {3}B {5}↷ TAKEOVER {2}from A$/),
      " 15.00 s  so far: orders 1 of 10",
    ]);
  });

  it("prints every event where everything is asked for", () => {
    const stream = output(false);
    const screen = new Screen(stream, true);
    screen.begin();
    screen.event("orders", "ran", "A", "closed 5 orders");
    vi.advanceTimersByTime(60_000);
    expect(written(stream)).toMatch(/✓ ran {7}closed 5 orders\n$/);
  });

  it("counts times from the first event, not from its start", () => {
    const screen = new Screen(output(false), false);
    vi.advanceTimersByTime(30_000);
    screen.begin();
    expect(screen.time(Date.now() + 1_500)).toBe("1.50 s");
  });
});
