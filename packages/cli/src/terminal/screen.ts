import { emitKeypressEvents } from "node:readline";
import { UsageError } from "../exit-codes.ts";
import type { Terminal } from "./terminal.ts";

/** Keys by their names: `q`, `X`, `up`, `return`, `escape`, `ctrl-c`. */
export type Key = string;

const enter = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const leave = "\u001b[?7h\u001b[?25h\u001b[?1049l";

/** Raw input: keys arrive one by one, and none of them sends a signal. */
type RawInput = NodeJS.ReadStream & { setRawMode?(isRaw: boolean): unknown };

/**
 * A terminal as a full screen: the alternate screen, without a cursor, with keys that arrive at once.
 *
 * However the program ends, it restores the terminal: by `close`, after an uncaught error, after a signal.
 */
export class Screen {
  readonly #terminal: Terminal;
  readonly #input: RawInput;
  readonly #onKey: (key: Key) => void;
  readonly #onResize: () => void;
  #isOpen = false;

  /** Throws a UsageError if stdin and stdout are no terminal. `onResize` is called when the size has changed. */
  constructor(terminal: Terminal, onKey: (key: Key) => void, onResize: () => void) {
    if (!terminal.isLive || terminal.stdin.isTTY !== true) {
      throw new UsageError("a full screen needs a terminal: leasehold ls and leasehold watch do without one");
    }
    this.#terminal = terminal;
    this.#input = terminal.stdin as RawInput;
    this.#onKey = onKey;
    this.#onResize = onResize;
  }

  get columns(): number {
    return this.#terminal.columns;
  }

  get rows(): number {
    return this.#terminal.stdout.rows || 24;
  }

  /** Takes over the terminal. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    process.once("exit", this.#restore);
    this.#terminal.stdout.write(enter);
    emitKeypressEvents(this.#input);
    this.#input.setRawMode?.(true);
    this.#input.on("keypress", this.#pressed);
    this.#input.resume();
    this.#terminal.stdout.on("resize", this.#onResize);
  }

  /** Restores the terminal. */
  close(): void {
    if (!this.#isOpen) return;
    process.off("exit", this.#restore);
    this.#terminal.stdout.off("resize", this.#onResize);
    this.#input.off("keypress", this.#pressed);
    this.#restore();
    this.#input.pause();
  }

  /** Shows lines from the top, and omits those that do not fit. No line is wider than the screen. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const visible = lines.slice(0, this.rows);
    // A line is erased before it is written: after a full line, erasing would remove its last character.
    const written = visible.map((line) => `\u001b[2K${line}\u001b[0m`).join("\r\n");
    const below = visible.length < this.rows ? "\r\n\u001b[J" : "";
    this.#terminal.stdout.write(`\u001b[H${written}${below}`);
  }

  readonly #restore = (): void => {
    this.#isOpen = false;
    this.#input.setRawMode?.(false);
    this.#terminal.stdout.write(leave);
  };

  readonly #pressed = (text: string | undefined, key: KeyPress | undefined): void => {
    const { name, ctrl, sequence } = key ?? {};
    if (ctrl && name !== undefined) this.#onKey(`ctrl-${name}`);
    // Letters as typed: X is another key than x.
    else if (text !== undefined && text.length === 1 && text >= " " && text !== "\u007f") this.#onKey(text);
    else this.#onKey(name ?? sequence ?? "");
  };
}

interface KeyPress {
  readonly name?: string;
  readonly ctrl?: boolean;
  readonly sequence?: string;
}
