import type { Check } from "./check.ts";
import {
  type Kind,
  type Mark,
  marks,
  type System,
  styleOf,
  systemNames,
  systems,
  systemWidth,
} from "./marks.ts";
import { type Step, Steps } from "./steps.ts";
import { type Output, type Piece, Terminal } from "./terminal.ts";

/** How far a system has come. */
interface Progress {
  readonly done: number;
  readonly total: number;
  readonly text: string;
}

const whoWidth = 4;
const barWidth = 20;
const redrawMs = 100;
/** Where lines are not rewritten in place, progress is told this often. */
const reportMs = 15_000;

/**
 * Shows what happens, as it happens: every event, or the incidents and one line a system that is rewritten in place.
 *
 * Where the output is no terminal, that line is printed now and then.
 */
export class Screen {
  readonly #terminal: Terminal;
  readonly #steps: Steps;
  readonly #showsAll: boolean;
  readonly #progress = new Map<System, Progress>();
  #startedAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(output: Output, showsAll: boolean) {
    this.#terminal = new Terminal(output);
    this.#steps = new Steps(this.#terminal);
    this.#showsAll = showsAll;
  }

  /** Prints what this is. */
  title(text: string): void {
    this.#terminal.print(["bold", text]);
  }

  /** Prints a line of text that belongs to no system. */
  note(text: string): void {
    this.#terminal.print(["dim", text]);
  }

  /** Prints an empty line. */
  gap(): void {
    this.#terminal.print("");
  }

  /** Shows something that takes a while, from now until it is done. */
  step(name: string): Step {
    return this.#steps.begin(name);
  }

  /** The first event is about to happen: times count from here. */
  begin(): void {
    this.#startedAt = Date.now();
    const system = "system".padEnd(systemWidth);
    this.note(`\n${"time".padStart(8)}  ${system}  ${"who".padEnd(whoWidth)}  what`);
    if (this.#showsAll) return;
    const [look, everyMs] = this.#terminal.isLiving
      ? [(): void => this.#draw(), redrawMs]
      : [(): void => this.#report(), reportMs];
    this.#timer = setInterval(look, everyMs);
    this.#timer.unref();
  }

  /** Nothing is shown any more of what may still happen: takes away what would be rewritten. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#steps.close();
    this.#terminal.live([]);
  }

  /** Gives a point in time, in epoch milliseconds, as the first column shows it. */
  time(at: number): string {
    return `${((at - (this.#startedAt ?? at)) / 1000).toFixed(2)} s`;
  }

  /** Prints what a system is about, or what came of it. */
  about(system: System, text: string): void {
    this.#terminal.print("  ", [systems[system], system.padEnd(systemWidth)], `  ${text}`);
  }

  /** Prints how a system came out. */
  result(system: System, isRight: boolean, text: string): void {
    const mark: Piece = isRight ? ["green", "✓"] : ["red", "✗"];
    this.#terminal.print("  ", mark, " ", [systems[system], system.padEnd(systemWidth)], `  ${text}`);
  }

  /** Shows how far a system has come. */
  progress(system: System, done: number, total: number, text: string): void {
    this.#progress.set(system, { done, total, text });
  }

  /** Prints one event of a system, for one of its participants or for all. */
  event(system: System, kind: Kind, who: string | undefined, text: string): void {
    const { mark, word, style, incident }: Mark = marks[kind];
    if (this.#isClosed || (!this.#showsAll && !incident)) return;
    const name = (who ?? "").padEnd(whoWidth);
    this.#terminal.print(
      ["dim", this.time(Date.now()).padStart(8)],
      "  ",
      [systems[system], system.padEnd(systemWidth)],
      "  ",
      who === undefined ? name : [styleOf(who), name],
      "  ",
      [style, `${mark} ${word.padEnd(8)}`],
      "  ",
      style === "dim" ? [style, text] : text,
    );
  }

  /** Prints some checks of systems, each with what was expected and what was found. */
  audit(audits: readonly { readonly system: System; readonly checks: readonly Check[] }[]): void {
    const all = audits.flatMap(({ checks }) => checks);
    const width = (column: "label" | "expected"): number =>
      Math.max(column.length, ...all.map((check) => check[column].length));
    const row = (system: string, { label, expected, actual }: Omit<Check, "ok" | "atAnyPace">): string =>
      `${system.padEnd(systemWidth)}  ${label.padEnd(width("label"))}  ${expected.padEnd(width("expected"))}  ${actual}`;
    this.note(`\n  ${row("system", { label: "audit", expected: "expected", actual: "actual" })}`);
    for (const { system, checks } of audits) {
      for (const [index, check] of checks.entries()) {
        const line = row(index === 0 ? system : "", check);
        this.#terminal.print(check.ok ? ["green", "✓"] : ["red", "✗"], " ", check.ok ? line : ["red", line]);
      }
    }
  }

  /** Prints the last line. */
  verdict(isRight: boolean, text: string): void {
    this.#terminal.print([isRight ? "green" : "red", text]);
  }

  #draw(): void {
    const lines = systemNames.flatMap((system): (readonly Piece[])[] => {
      const progress = this.#progress.get(system);
      if (progress === undefined) return [];
      const { done, total, text } = progress;
      const filled = Math.round((Math.min(done, total) / total) * barWidth);
      const bar: Piece[] = [
        [systems[system], "━".repeat(filled)],
        ["dim", "─".repeat(barWidth - filled)],
      ];
      const name: Piece = [systems[system], system.padEnd(systemWidth)];
      return [["  ", name, "  ", ...bar, `  ${text}`]];
    });
    const clock: Piece = [
      "dim",
      `${this.time(Date.now()).padStart(8)}  Ctrl-C ends it and leaves nothing behind`,
    ];
    this.#terminal.live([[], ...lines, [clock]]);
  }

  #report(): void {
    const texts = systemNames.flatMap((system) => {
      const progress = this.#progress.get(system);
      return progress === undefined ? [] : [`${system} ${progress.done} of ${progress.total}`];
    });
    this.#terminal.print(`${this.time(Date.now()).padStart(8)}  so far: ${texts.join(", ")}`);
  }
}
