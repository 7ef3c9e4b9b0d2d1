// Labels with their values, one below the other: `  holder      ip-10-0-3-17:812`. Every value is shown as text.

import { fold, shown, widthOf } from "./text.ts";

const indent = "  ";
const gap = 2;
const leastValue = 16;

/** Lines of labels and values, none wider than the columns; a longer value continues below its beginning. */
export function fieldLines(
  fields: readonly (readonly [label: string, value: string])[],
  columns: number,
): readonly string[] {
  const width = Math.max(...fields.map(([label]) => widthOf(label))) + gap;
  const left = columns - indent.length - width;
  // If there is no room beside the label, the value comes below it.
  const isBelow = left < leastValue;
  return fields.flatMap(([label, value]) => {
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
