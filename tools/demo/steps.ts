import type { Piece, Terminal } from "./terminal.ts";

/** Something that is under way before the first event, with its name and its time on the screen. */
export interface Step {
  /** Says how far it is. */
  tell(detail: string): void;
  /** It is over: says what came of it. */
  done(detail: string): void;
}

const nameWidth = 26;
const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const frameMs = 100;
/** Where lines are not rewritten in place, a step that takes long says so this often. */
const reminderMs = 10_000;

/** The steps that are under way. */
export class Steps {
  readonly #terminal: Terminal;
  readonly #running = new Set<RunningStep>();
  readonly #timer: NodeJS.Timeout;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    const look = terminal.isLiving ? (): void => this.#draw() : (): void => this.#remind();
    this.#timer = setInterval(look, frameMs);
    this.#timer.unref();
  }

  /** Begins a step. */
  begin(name: string): Step {
    const step: RunningStep = { name, detail: "", startedAt: performance.now(), saidAt: performance.now() };
    this.#running.add(step);
    if (this.#terminal.isLiving) this.#draw();
    else this.#terminal.print(`  ${name} ...`);
    return {
      tell: (detail) => {
        step.detail = detail;
      },
      done: (detail) => this.#end(step, ["green", "✓"], detail),
    };
  }

  /** Ends all of it: a step that is still under way then did not come to its end. */
  close(): void {
    clearInterval(this.#timer);
    for (const step of this.#running) this.#end(step, ["red", "✗"], step.detail);
  }

  #end(step: RunningStep, mark: Piece, detail: string): void {
    if (!this.#running.delete(step)) return;
    this.#terminal.live([...this.#running].map((one) => this.#line(one)));
    this.#terminal.print("  ", mark, ` ${step.name.padEnd(nameWidth)} `, [
      "dim",
      `${elapsed(step)}  ${detail}`,
    ]);
  }

  #draw(): void {
    if (this.#running.size > 0) this.#terminal.live([...this.#running].map((step) => this.#line(step)));
  }

  #line(step: RunningStep): Piece[] {
    const frame = frames[Math.floor(performance.now() / frameMs) % frames.length] ?? "";
    return [
      "  ",
      ["cyan", frame],
      ` ${step.name.padEnd(nameWidth)} `,
      ["dim", `${elapsed(step)}  ${step.detail}`],
    ];
  }

  #remind(): void {
    for (const step of this.#running) {
      if (performance.now() - step.saidAt < reminderMs) continue;
      step.saidAt = performance.now();
      this.#terminal.print(`  ${step.name} ... ${elapsed(step).trim()}  ${step.detail}`);
    }
  }
}

interface RunningStep {
  readonly name: string;
  readonly startedAt: number;
  detail: string;
  saidAt: number;
}

function elapsed({ startedAt }: RunningStep): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`;
}
