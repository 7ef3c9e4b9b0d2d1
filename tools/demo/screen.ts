import { type Check, type System, systems } from "./scenario.ts";
import { type Output, type Piece, type Style, Terminal } from "./terminal.ts";

/** How a kind of line is marked. */
interface Mark {
  readonly mark: string;
  readonly word: string;
  readonly style: Style;
  /** Whether it is shown where not everything is: what goes wrong in the plan, and what becomes of it. */
  readonly incident?: true;
}

/** What a line can be about, and how it is marked. */
const marks = {
  fired: { mark: "▸", word: "fired", style: "bold" },
  ran: { mark: "✓", word: "ran", style: "green" },
  skipped: { mark: "·", word: "skipped", style: "dim" },
  takeover: { mark: "↷", word: "TAKEOVER", style: "yellow", incident: true },
  killed: { mark: "✗", word: "KILLED", style: "red", incident: true },
  frozen: { mark: "‖", word: "FROZEN", style: "blue", incident: true },
  woken: { mark: "▶", word: "WOKEN", style: "blue", incident: true },
  lost: { mark: "⊘", word: "LOST", style: "magenta", incident: true },
  started: { mark: "+", word: "started", style: "cyan" },
  workflow: { mark: "◆", word: "workflow", style: "cyan" },
  waits: { mark: "◆", word: "WAITS", style: "cyan", incident: true },
  goesOn: { mark: "◆", word: "GOES ON", style: "cyan", incident: true },
  asked: { mark: "▸", word: "asked", style: "bold" },
  computed: { mark: "✓", word: "computed", style: "green" },
  shared: { mark: "✓", word: "shared", style: "green" },
  stale: { mark: "·", word: "stale", style: "dim" },
  refused: { mark: "⊘", word: "REFUSED", style: "magenta", incident: true },
  added: { mark: "▸", word: "added", style: "bold" },
  parked: { mark: "⊘", word: "PARKED", style: "magenta", incident: true },
  entered: { mark: "▸", word: "entered", style: "bold" },
  serving: { mark: "✓", word: "serving", style: "green" },
  left: { mark: "·", word: "left", style: "dim" },
  silent: { mark: "✗", word: "SILENT", style: "red", incident: true },
  cleaned: { mark: "↷", word: "CLEANED", style: "yellow", incident: true },
  failed: { mark: "!", word: "FAILED", style: "red", incident: true },
} as const satisfies Record<string, Mark>;

/** What a line can be about. */
export type Kind = keyof typeof marks;

const systemStyles: Readonly<Record<System, Style>> = {
  orders: "magenta",
  imports: "cyan",
  stock: "green",
  tasks: "yellow",
  tickets: "blue",
};

/** Wide enough for the name of every system. */
const systemWidth = Math.max(...systems.map(({ length }) => length));

/** Something that is under way before the first event, with its name and its time on the screen. */
export interface Step {
  /** Says how far it is. */
  tell(detail: string): void;
  /** It is over: says what came of it. */
  done(detail: string): void;
}

interface RunningStep {
  readonly name: string;
  readonly startedAt: number;
  detail: string;
}

/** How far a system has come. */
interface Progress {
  readonly done: number;
  readonly total: number;
  readonly text: string;
}

const whoWidth = 4;
const barWidth = 20;
const stepWidth = 26;
const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const redrawMs = 100;

/**
 * Shows what happens, as it happens: every event, or the incidents, and on a terminal one line a system that is rewritten
 * in place.
 */
export class Screen {
  readonly #terminal: Terminal;
  readonly #showsAll: boolean;
  readonly #steps = new Set<RunningStep>();
  readonly #progress = new Map<System, Progress>();
  readonly #timer: NodeJS.Timeout;
  #startedAt: number | undefined;
  #isClosed = false;

  constructor(output: Output, showsAll: boolean) {
    this.#terminal = new Terminal(output);
    this.#showsAll = showsAll;
    this.#timer = setInterval(() => this.#draw(), redrawMs);
    this.#timer.unref();
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
    const step: RunningStep = { name, detail: "", startedAt: performance.now() };
    this.#steps.add(step);
    if (this.#terminal.isLiving) this.#draw();
    else this.#terminal.print(`  ${name} ...`);
    return {
      tell: (detail) => {
        step.detail = detail;
      },
      done: (detail) => this.#end(step, ["green", "✓"], detail),
    };
  }

  /** The first event is about to happen: times count from here. */
  begin(): void {
    this.#startedAt = Date.now();
    const system = "system".padEnd(systemWidth);
    this.note(`\n${"time".padStart(8)}  ${system}  ${"who".padEnd(whoWidth)}  what`);
  }

  /**
   * Nothing is shown any more of what may still happen: takes away what would be rewritten. A step that is still under way
   * did not come to its end.
   */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const step of this.#steps) this.#end(step, ["red", "✗"], step.detail);
    this.#terminal.live([]);
  }

  /** Gives a point in time, in epoch milliseconds, as the first column shows it. */
  time(at: number): string {
    return `${((at - (this.#startedAt ?? at)) / 1000).toFixed(2)} s`;
  }

  /** Prints what a system is about, or what came of it. */
  about(system: System, text: string): void {
    this.#terminal.print("  ", [systemStyles[system], system.padEnd(systemWidth)], `  ${text}`);
  }

  /** Prints how a system came out. */
  result(system: System, isRight: boolean, text: string): void {
    const mark: Piece = isRight ? ["green", "✓"] : ["red", "✗"];
    this.#terminal.print("  ", mark, " ", [systemStyles[system], system.padEnd(systemWidth)], `  ${text}`);
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
      [systemStyles[system], system.padEnd(systemWidth)],
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

  #end(step: RunningStep, mark: Piece, detail: string): void {
    if (!this.#steps.delete(step)) return;
    this.#draw();
    const text: Piece = ["dim", `${elapsed(step)}  ${detail}`];
    this.#terminal.print("  ", mark, ` ${step.name.padEnd(stepWidth)} `, text);
  }

  #draw(): void {
    const frame = frames[Math.floor(performance.now() / redrawMs) % frames.length] ?? "";
    const steps = [...this.#steps].map((step): readonly Piece[] => {
      const text: Piece = ["dim", `${elapsed(step)}  ${step.detail}`];
      return ["  ", ["cyan", frame], ` ${step.name.padEnd(stepWidth)} `, text];
    });
    this.#terminal.live([...steps, ...this.#progressLines()]);
  }

  #progressLines(): (readonly Piece[])[] {
    if (this.#startedAt === undefined || this.#showsAll || this.#isClosed) return [];
    const lines = systems.flatMap((system): (readonly Piece[])[] => {
      const progress = this.#progress.get(system);
      if (progress === undefined) return [];
      const { done, total, text } = progress;
      const filled = Math.round((Math.min(done, total) / total) * barWidth);
      const bar: Piece[] = [
        [systemStyles[system], "━".repeat(filled)],
        ["dim", "─".repeat(barWidth - filled)],
      ];
      const name: Piece = [systemStyles[system], system.padEnd(systemWidth)];
      return [["  ", name, "  ", ...bar, `  ${text}`]];
    });
    const clock = `${this.time(Date.now()).padStart(8)}  Ctrl-C ends it and leaves nothing behind`;
    return [[], ...lines, [["dim", clock]]];
  }
}

function elapsed({ startedAt }: RunningStep): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`;
}

const instanceStyles: readonly Style[] = ["cyan", "yellow", "magenta", "green", "blue"];

/** Gives a name the same colour wherever it stands. */
function styleOf(who: string): Style {
  const index = [...who].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return instanceStyles[index % instanceStyles.length] ?? "bold";
}
