import { styleText } from "node:util";
import type { Check } from "./check.ts";

type Style = Parameters<typeof styleText>[0];

/** What a line is about, and how it is marked. */
const marks = {
  fired: { mark: "▸", word: "fired", style: "bold" },
  ran: { mark: "✓", word: "ran", style: "green" },
  skipped: { mark: "·", word: "skipped", style: "dim" },
  takeover: { mark: "↷", word: "TAKEOVER", style: "yellow" },
  killed: { mark: "✗", word: "KILLED", style: "red" },
  frozen: { mark: "‖", word: "FROZEN", style: "blue" },
  woken: { mark: "▶", word: "WOKEN", style: "blue" },
  lost: { mark: "⊘", word: "LOST", style: "magenta" },
  started: { mark: "+", word: "started", style: "cyan" },
  workflow: { mark: "◆", word: "workflow", style: "cyan" },
  failed: { mark: "!", word: "FAILED", style: "red" },
} as const satisfies Record<string, { mark: string; word: string; style: Style }>;

/** What a line can be about. */
export type Kind = keyof typeof marks;

const instanceStyles: readonly Style[] = ["cyan", "yellow", "magenta", "green", "blue"];

/** Prints what happens as it happens, one aligned line each, and coloured where the terminal wants it. */
export class Screen {
  readonly #startedAt: number;

  /** `startedAt` is what the times count from, in epoch milliseconds. */
  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  /** Gives a point in time, in epoch milliseconds, as the first column shows it. */
  time(at: number): string {
    return `${((at - this.#startedAt) / 1000).toFixed(2)} s`;
  }

  /** Prints what this is. */
  title(text: string): void {
    print(paint("bold", text));
  }

  /** Prints a line of text that belongs to no tick. */
  note(text: string): void {
    print(paint("dim", text));
  }

  /** Prints the last line. */
  verdict(isRight: boolean, text: string): void {
    print(paint(isRight ? "green" : "red", text));
  }

  /** Prints the names of the columns. */
  header(): void {
    this.note(`\n${"time".padStart(8)}  ${"tick".padStart(4)}  who  what`);
  }

  /** Prints one thing that happened. */
  event(kind: Kind, tick: number | undefined, instance: string | undefined, text: string): void {
    const { mark, word, style } = marks[kind];
    const who = (instance ?? "").padEnd(3);
    const columns = [
      paint("dim", this.time(Date.now()).padStart(8)),
      String(tick ?? "").padStart(4),
      instance === undefined ? who : paint(styleOf(instance), who),
      paint(style, `${mark} ${word.padEnd(8)}`),
      kind === "skipped" ? paint(style, text) : text,
    ];
    print(columns.join("  "));
  }

  /** Prints the audit. */
  audit(checks: readonly Check[]): void {
    const width = (column: "label" | "expected"): number =>
      Math.max(column.length, ...checks.map((check) => check[column].length));
    const row = (label: string, expected: string, actual: string): string =>
      `${label.padEnd(width("label"))}  ${expected.padEnd(width("expected"))}  ${actual}`;
    print(`\n  ${paint("dim", row("audit", "expected", "actual"))}`);
    for (const { ok, label, expected, actual } of checks) {
      const line = row(label, expected, actual);
      print(`${ok ? paint("green", "✓") : paint("red", "✗")} ${ok ? line : paint("red", line)}`);
    }
    print("");
  }
}

function styleOf(instance: string): Style {
  const index = instance.charCodeAt(0) - "A".charCodeAt(0);
  return instanceStyles[index % instanceStyles.length] ?? "bold";
}

/** Heeds NO_COLOR, FORCE_COLOR, and whether the output is a terminal. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
