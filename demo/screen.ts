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
  asked: { mark: "▸", word: "asked", style: "bold" },
  computed: { mark: "✓", word: "computed", style: "green" },
  shared: { mark: "✓", word: "shared", style: "green" },
  stale: { mark: "·", word: "stale", style: "dim" },
  refused: { mark: "⊘", word: "refused", style: "magenta" },
  added: { mark: "▸", word: "added", style: "bold" },
  parked: { mark: "⊘", word: "parked", style: "magenta" },
  entered: { mark: "▸", word: "entered", style: "bold" },
  serving: { mark: "✓", word: "serving", style: "green" },
  left: { mark: "·", word: "left", style: "dim" },
  silent: { mark: "✗", word: "SILENT", style: "red" },
  cleaned: { mark: "↷", word: "cleaned", style: "yellow" },
  failed: { mark: "!", word: "FAILED", style: "red" },
} as const satisfies Record<string, { mark: string; word: string; style: Style }>;

/** What a line can be about. */
export type Kind = keyof typeof marks;

/** The systems of the app, as lines and the audit name them, and how they are coloured. */
const systems = {
  orders: "magenta",
  imports: "cyan",
  stock: "green",
  tasks: "yellow",
  tickets: "blue",
} as const satisfies Record<string, Style>;

/** A system of the app. */
export type System = keyof typeof systems;

const systemWidth = Math.max(...Object.keys(systems).map(({ length }) => length));
const whoWidth = 4;

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

  /** Prints a line of text that belongs to no system. */
  note(text: string): void {
    print(paint("dim", text));
  }

  /** Prints the last line. */
  verdict(isRight: boolean, text: string): void {
    print(paint(isRight ? "green" : "red", text));
  }

  /** Prints what a system is about. */
  about(system: System, text: string): void {
    print(`  ${paint(systems[system], system.padEnd(systemWidth))}  ${text}`);
  }

  /** Prints the names of the columns. */
  header(): void {
    const system = "system".padEnd(systemWidth);
    this.note(`\n${"time".padStart(8)}  ${system}  ${"who".padEnd(whoWidth)}  what`);
  }

  /** Prints one thing that happened in a system, to somebody of it or to nobody in particular. */
  event(system: System, kind: Kind, who: string | undefined, text: string): void {
    const { mark, word, style } = marks[kind];
    const name = (who ?? "").padEnd(whoWidth);
    const columns = [
      paint("dim", this.time(Date.now()).padStart(8)),
      paint(systems[system], system.padEnd(systemWidth)),
      who === undefined ? name : paint(styleOf(who), name),
      paint(style, `${mark} ${word.padEnd(8)}`),
      style === "dim" ? paint(style, text) : text,
    ];
    print(columns.join("  "));
  }

  /** Prints the audit of every system. */
  audit(audits: readonly { readonly system: System; readonly checks: readonly Check[] }[]): void {
    const all = audits.flatMap(({ checks }) => checks);
    const width = (column: "label" | "expected"): number =>
      Math.max(column.length, ...all.map((check) => check[column].length));
    const row = (system: string, { label, expected, actual }: Omit<Check, "ok">): string =>
      `${system.padEnd(systemWidth)}  ${label.padEnd(width("label"))}  ${expected.padEnd(width("expected"))}  ${actual}`;
    print(`\n  ${paint("dim", row("system", { label: "audit", expected: "expected", actual: "actual" }))}`);
    for (const { system, checks } of audits) {
      for (const [index, check] of checks.entries()) {
        const line = row(index === 0 ? system : "", check);
        print(
          `${check.ok ? paint("green", "✓") : paint("red", "✗")} ${check.ok ? line : paint("red", line)}`,
        );
      }
    }
    print("");
  }
}

function styleOf(who: string): Style {
  const index = [...who].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return instanceStyles[index % instanceStyles.length] ?? "bold";
}

/** Heeds NO_COLOR, FORCE_COLOR, and whether the output is a terminal. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
