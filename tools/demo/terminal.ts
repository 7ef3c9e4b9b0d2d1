import { styleText } from "node:util";

/** Where lines go: process.stdout, or what stands for it in a test. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** How text is coloured, in the words of node:util. */
export type Style = Parameters<typeof styleText>[0];

/** A piece of a line, and how it is coloured. */
export type Piece = string | readonly [style: Style, text: string];

const usualColumns = 80;

/**
 * Prints lines, and keeps some at the bottom that are rewritten in place.
 *
 * What is not a terminal has no such lines, and no colours: neither has a terminal whose user set NO_COLOR.
 */
export class Terminal {
  /** Whether there are lines that are rewritten in place. */
  readonly isLiving: boolean;
  readonly #output: Output;
  #drawn = 0;
  #living: readonly (readonly Piece[])[] = [];

  constructor(output: Output) {
    this.#output = output;
    this.isLiving = output.isTTY === true && process.env.TERM !== "dumb";
  }

  /** Prints a line that stays. */
  print(...pieces: Piece[]): void {
    this.#write(`${this.#erased()}${this.#painted(pieces)}\n${this.#redrawn()}`);
  }

  /** Replaces the lines at the bottom. Each is cut where the terminal ends. */
  live(lines: readonly (readonly Piece[])[]): void {
    if (!this.isLiving) return;
    this.#living = lines;
    this.#write(`${this.#erased()}${this.#redrawn()}`);
  }

  /** Goes back over the lines at the bottom. A line that wrapped would be missed, which is why they are cut. */
  #erased(): string {
    const lines = this.#drawn;
    this.#drawn = 0;
    return lines === 0 ? "" : `\u001b[${lines}A\u001b[J`;
  }

  #redrawn(): string {
    this.#drawn = this.#living.length;
    const columns = (this.#output.columns || usualColumns) - 1;
    return this.#living.map((line) => `${this.#painted(cut(line, columns))}\n`).join("");
  }

  #painted(pieces: readonly Piece[]): string {
    return pieces
      .map((piece) =>
        typeof piece === "string" ? piece : styleText(piece[0], piece[1], { stream: this.#output }),
      )
      .join("");
  }

  #write(text: string): void {
    if (text !== "") this.#output.write(text);
  }
}

function cut(line: readonly Piece[], columns: number): Piece[] {
  let left = columns;
  return line.map((piece): Piece => {
    const [style, text] = typeof piece === "string" ? [undefined, piece] : piece;
    const shown = text.slice(0, Math.max(0, left));
    left -= text.length;
    return style === undefined ? shown : [style, shown];
  });
}
