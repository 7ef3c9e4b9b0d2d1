// Text for a terminal. Keys, owners and payloads of other parties may contain anything, and never reach the terminal as
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

const indent = "  ";
const gap = 2;
const leastValue = 16;

/**
 * Lines of labels and values, without those that have none, and none wider than the columns; a longer value continues
 * below its beginning.
 */
export function fieldLines(
  fields: readonly (readonly [label: string, value: string | undefined])[],
  columns: number,
): readonly string[] {
  const known = fields.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const]));
  const width = Math.max(...known.map(([label]) => widthOf(label))) + gap;
  const left = columns - indent.length - width;
  // If there is no room beside the label, the value comes below it.
  const isBelow = left < leastValue;
  return known.flatMap(([label, value]) => {
    const [first = "", ...others] = fold(
      shown(value),
      Math.max(1, isBelow ? columns - 2 * indent.length : left),
    );
    if (isBelow) return [indent + label, ...[first, ...others].map((line) => indent + indent + line)];
    const blank = indent + " ".repeat(width);
    return [indent + label.padEnd(width) + first, ...others.map((line) => blank + line)];
  });
}

/** A paragraph, none of its lines wider than the columns. */
export function paragraph(text: string, columns: number, prefix = ""): readonly string[] {
  const blank = " ".repeat(prefix.length);
  return fold(shown(text), Math.max(1, columns - prefix.length)).map((line, index) =>
    index === 0 ? prefix + line : blank + line,
  );
}

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Reads `500ms`, `30s`, `5m`, `2h`, `7d`, `1h30m` as milliseconds; returns what is allowed for any other text. */
export function parseDuration(text: string): number | { readonly advice: string } {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) !== 0) return { advice: `say ${text}s or ${text}ms` };
  if (text === "0") return 0;
  const parts = text.match(/\d+(?:\.\d+)?[a-z]+/g) ?? [];
  let total = 0;
  for (const part of parts) {
    const [, count, unit] = pattern.exec(part) ?? [];
    if (unit === undefined) return { advice: "allowed: a duration such as 500ms, 30s, 5m, 2h, 7d" };
    total += Number(count) * units[unit as keyof typeof units];
  }
  if (parts.join("") !== text || parts.length === 0 || !Number.isSafeInteger(Math.round(total))) {
    return { advice: "allowed: a duration such as 500ms, 30s, 5m, 2h, 7d" };
  }
  return Math.round(total);
}

/** A duration in its two largest units: `1h 12m`, `6m 02s`, `41s`, `1.9s`, `320ms`. */
export function durationText(ms: number): string {
  if (ms < 0) return `-${durationText(-ms)}`;
  if (!Number.isFinite(ms)) return "for ever";
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const [s, m, h, d] = [
    seconds % 60,
    Math.floor(seconds / 60) % 60,
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 86_400),
  ];
  const two = (number: number): string => String(number).padStart(2, "0");
  if (d > 0) return `${d}d ${two(h)}h`;
  if (h > 0) return `${h}h ${two(m)}m`;
  return m > 0 ? `${m}m ${two(s)}s` : `${s}s`;
}

/** A duration in whole seconds, for values that change on screen: `4s`, `6m 02s`; less than one in milliseconds. */
export function ageText(ms: number): string {
  if (ms < 0) return `-${ageText(-ms)}`;
  return ms >= 1_000 && ms < 9_950 ? `${Math.round(ms / 1_000)}s` : durationText(ms);
}

/** `1 key`, `2 keys`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** A point in time in UTC, or in the machine's own zone: `2026-11-22 02:54:10`. */
export function timeText(epochMs: number, zone: "utc" | "local" = "utc"): string {
  const at = new Date(zone === "utc" ? epochMs : epochMs - new Date(epochMs).getTimezoneOffset() * 60_000);
  return Number.isNaN(at.getTime()) ? "?" : at.toISOString().slice(0, 19).replace("T", " ");
}

/** The address of a page of the documentation, or of a section of it: `RUNBOOK.md#ttl`. */
export function docsAddress(page: string): string {
  return `https://github.com/leasehold/leasehold/blob/main/docs/${page}`;
}
