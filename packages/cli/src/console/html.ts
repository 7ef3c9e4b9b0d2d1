// HTML that no value can break: a template treats every value as text, unless it is HTML of another template.

import { hostile } from "../terminal/text.ts";

const replacements: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A piece of a page. Only `html` makes it, so a text of the table never is one. */
export class Html {
  readonly #text: string;

  constructor(strings: TemplateStringsArray, values: readonly HtmlValue[]) {
    this.#text = strings
      .map((string, index) => (index === 0 ? "" : rendered(values[index - 1])) + string)
      .join("");
  }

  toString(): string {
    return this.#text;
  }
}

/** The values of a template. */
export type HtmlValue = Html | string | number | undefined | false | readonly HtmlValue[];

/** A template of HTML. Use it for elements' content and for attributes in double quotes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(strings, values);
}

function rendered(value: HtmlValue): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(rendered).join("");
  return visible(String(value)).replace(/[&<>"']/g, (character) => replacements[character] ?? "");
}

/**
 * Hostile characters are written out, except line breaks and tabs. A browser shows these as blanks, or in a `pre`
 * unchanged.
 */
function visible(text: string): string {
  return text.replace(hostile, (character) =>
    character === "\n" || character === "\t"
      ? character
      : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}
