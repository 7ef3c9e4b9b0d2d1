// HTML that no value can break, and the common parts of several pages. A template treats every value as text, unless it
// is HTML of another template.

import { createHash } from "node:crypto";
import type { LeaseRecord, LeaseState } from "@leasehold/client/record";
import { ageText, hostile, timeText } from "../terminal/text.ts";
import { stateWord } from "../view/key-rows.ts";

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

/** A point in time: UTC in the page, the reader's own time once the script has run, with UTC on hover. */
export function time(epochMs: number | undefined): Html {
  if (epochMs === undefined || !Number.isFinite(epochMs) || Math.abs(epochMs) > 8.64e15) return html`?`;
  return html`<time datetime="${new Date(epochMs).toISOString()}">${timeText(epochMs)} UTC</time>`;
}

/** A state as its word, with a colour that adds nothing to the word. */
export function stateMark(state: LeaseState, word: string = stateWord(state)): Html {
  const kind = {
    expired: "bad",
    paused: "warn",
    grace: "warn",
    stopping: "warn",
    held: "good",
    cooldown: "dim",
    free: "dim",
  };
  return html`<span class="${kind[state]}">${word}</span>`;
}

/** The rest of a lease's time, as a bar and as text. */
export function leaseBar({ expiresAt, leaseDurationMs }: LeaseRecord, readAt: number): Html {
  const leftMs = expiresAt - readAt;
  const share = Math.max(0, Math.min(1, leftMs / Math.max(1, leaseDurationMs)));
  const text = leftMs >= 0 ? `${ageText(leftMs)} left` : `ended ${ageText(-leftMs)} ago`;
  return html`<meter min="0" max="1" value="${share.toFixed(3)}" aria-label="${text}"></meter> <span class="number">${text}</span>`;
}

/** The address of a key's page. */
function keyAddress(key: string): string {
  return `/key?${new URLSearchParams({ key })}`;
}

/** A link to a key's page. */
export function keyLink(key: string): Html {
  return html`<a href="${keyAddress(key)}" data-focus="${`key ${key}`}">${key}</a>`;
}

const foldedLetters = 40;
const mostLetters = 20_000;

/** A whole payload. It is shown as text, whatever it contains. */
export function payload(data: unknown): Html {
  if (data === undefined) return html`<span class="dim">none</span>`;
  return html`<pre>${whole(JSON.stringify(data, undefined, 2) ?? "?")}</pre>`;
}

/** A payload in one line, which unfolds. `name` distinguishes it from others on the page. */
export function foldedPayload(data: unknown, name: string): Html {
  if (data === undefined) return html``;
  const text = JSON.stringify(data) ?? "?";
  if (text.length <= foldedLetters) return html`<code>${text}</code>`;
  return html`<details data-focus="${name}"><summary><code>${text.slice(0, foldedLetters)}…</code></summary>${payload(data)}</details>`;
}

function whole(text: string): string {
  return text.length > mostLetters
    ? `${text.slice(0, mostLetters)}\n… ${text.length - mostLetters} more characters`
    : text;
}

/** Names one acquisition without its token, because a holder of the token can end the lease. */
export function acquisitionId({ token }: Pick<LeaseRecord, "token">): string {
  return createHash("sha256").update(token).digest("base64url").slice(0, 22);
}

/** A write that a page offers. */
export interface Offer {
  readonly action: string;
  readonly title: string;
  /** Its effect, and what it does not do. */
  readonly explanation: HtmlText;
  /** Hidden fields of the form. */
  readonly fields: Readonly<Record<string, string>>;
  /** Fields that the person fills in. */
  readonly inputs: readonly {
    readonly name: string;
    readonly label: string;
    readonly isOptional?: boolean;
    readonly value?: string;
  }[];
  /** The word that the person has to type, against mistakes. */
  readonly word?: string;
  /** The same action on the command line. */
  readonly commandLine: string;
  readonly isDangerous?: boolean;
}

type HtmlText = Html | string;

/** A button, and the dialog that it opens; without `--write` only the equivalent command line. */
export function offer(id: string, given: Offer, isReadOnly: boolean): Html {
  const { action, title, explanation, fields, inputs, word, commandLine, isDangerous = false } = given;
  if (isReadOnly) return html`<li>${title}: <code>${commandLine}</code></li>`;
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const asked = inputs.map(
    ({ name, label, isOptional, value }) => html`<label>${label}${isOptional ? " (may be left out)" : ""}
<input name="${name}" value="${value ?? ""}" autocomplete="off"${isOptional ? "" : html` required`}></label>`,
  );
  const typed =
    word === undefined
      ? ""
      : html`<label>Type <code>${word}</code> to do it<input name="word" autocomplete="off" required></label>`;
  return html`<li><button type="button" data-opens="${id}" data-focus="${id}"${isDangerous ? html` class="danger"` : ""}>${title}</button>
<dialog id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2><p>${explanation}</p>
<form data-action="${action}">${hidden}${asked}${typed}
<p>The same on the command line: <code>${commandLine}</code></p>
<p><button${isDangerous ? html` class="danger"` : ""}>${title}</button> <button type="button" data-closes>Do nothing</button></p>
<p role="status"></p></form></dialog></li>`;
}
