// Other parties' text on a terminal: keys, owners and payloads may contain anything, and never reach the terminal as
// commands.

/** Control characters, and characters that hide or reorder their neighbours. */
export const hostile: RegExp = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\uff01-\uff60]/u;

/** Shows a text, with each character that a terminal interprets written out, such as \x1b. */
export function shown(text: string): string {
  return text.replace(hostile, (character) => {
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
    return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\u{${hex}}`;
  });
}

/** A document as JSON that is safe for a terminal: characters that it interprets are escaped, with the same meaning. */
export function jsonText(value: unknown, indentation?: number): string {
  const text = JSON.stringify(value, undefined, indentation) ?? "null";
  // These line breaks come from the indentation; those of texts are escaped already.
  return text.replace(hostile, (character) =>
    character === "\n"
      ? character
      : [...Array(character.length).keys()]
          .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
          .join(""),
  );
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1;
  return width;
}

/** Cuts a text to this many columns, and marks the cut: `lambda:close-ord…`. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 1;
  for (const { segment } of graphemes.segment(text)) {
    width += wide.test(segment) ? 2 : 1;
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept}…`;
}

/** Breaks a text into lines of this many columns, between words if possible. */
export function fold(text: string, columns: number): string[] {
  if (widthOf(text) <= columns) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((one) => pieces(one, columns))) {
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > columns) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** A word that is wider than a line, in as many pieces as needed. */
function pieces(word: string, columns: number): string[] {
  if (widthOf(word) <= columns) return [word];
  const found: string[] = [];
  let piece = "";
  for (const { segment } of graphemes.segment(word)) {
    if (piece !== "" && widthOf(piece + segment) > columns) {
      found.push(piece);
      piece = "";
    }
    piece += segment;
  }
  return [...found, piece];
}
