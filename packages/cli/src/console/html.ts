// HTML that no value can break, and the common parts of several pages. A template treats every value as text, unless it
// is HTML of another template.

import { createHash } from "node:crypto";
import type { LeaseRecord } from "@leasehold/client/record";
import { ageText, hostile, jsonText, timeText } from "../terminal/text.ts";

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

/** A point in time, in UTC. The page's script shows the reader's own time where the clock says `local`. */
export function time(epochMs: number | undefined): Html {
  if (epochMs === undefined || !Number.isFinite(epochMs) || Math.abs(epochMs) > 8.64e15) return html`?`;
  return html`<time datetime="${new Date(epochMs).toISOString()}">${timeText(epochMs)}</time>`;
}

/** What a state means for a person, as a colour: it adds nothing to the state's word. */
const tones: Readonly<Record<string, "good" | "bad" | "warn" | "info" | "special">> = {
  ...{ held: "good", stopping: "warn", grace: "warn", expired: "bad", paused: "special" },
  ...{ succeeded: "good", running: "info", failed: "bad", exhausted: "bad", lost: "bad", missed: "warn" },
  ...{ acquired: "good", broken: "bad", break: "bad", takenOver: "warn", "taken over": "warn" },
  ...{ stop: "warn", pause: "special", parked: "bad", ok: "good", warning: "warn", error: "bad" },
};

export function toneOf(state: string): string {
  return (Object.hasOwn(tones, state) && tones[state]) || "quiet";
}

/** A state as its word, in its colour. */
export function badge(state: string, word: string = state): Html {
  return html`<span class="badge ${toneOf(state)}">${word}</span>`;
}

/** The rest of a lease's time, as a bar and as text. */
export function leaseBar({ expiresAt, leaseDurationMs }: LeaseRecord, readAt: number): Html {
  const leftMs = expiresAt - readAt;
  const share = Math.max(0, Math.min(1, leftMs / Math.max(1, leaseDurationMs)));
  const text = leftMs >= 0 ? `${ageText(leftMs)} left` : `ended ${ageText(-leftMs)} ago`;
  return html`<meter min="0" max="1" value="${share.toFixed(3)}" aria-label="${text}"></meter> <span class="left">${text}</span>`;
}

const mostOfName = 64;

/** A name of any length and script, apart from the text around it. A long one loses its middle, which its title has. */
export function named(text: string | undefined, most: number = mostOfName): Html | undefined {
  if (text === undefined || text === "") return undefined;
  const letters = [...text];
  if (letters.length <= most) return html`<bdi>${text}</bdi>`;
  const end = Math.floor(most / 3);
  return html`<bdi title="${text}">${letters.slice(0, most - end - 1).join("")}…${letters.slice(-end).join("")}</bdi>`;
}

export function keyAddress(key: string): string {
  return `/key?${new URLSearchParams({ key })}`;
}

export function keyLink(key: string): Html {
  return html`<a href="${keyAddress(key)}" title="${key}">${named(key)}</a>`;
}

/** Names and values, without those that have none. */
export function facts(pairs: readonly (readonly [name: string, value: HtmlValue])[]): Html {
  const known = pairs.filter(([, value]) => value !== undefined && value !== false && value !== "");
  return html`<dl>${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A part of a page under a heading of its own. */
export function section(title: string, content: HtmlValue, note?: HtmlValue): Html {
  return html`<section class="card"><h2>${title}</h2>${note === undefined ? "" : html`<p class="dim">${note}</p>`}${content}</section>`;
}

const mostLetters = 20_000;

/** A text in one line, which unfolds into the whole. */
function folded(line: string, whole: string): Html {
  const more = whole.length - mostLetters;
  return html`<details><summary>${line}…</summary><pre tabindex="0">${whole.slice(0, mostLetters)}${more > 0 && `\n… ${more} more characters`}</pre></details>`;
}

/** A payload. It is shown as text, whatever it contains. */
export function payloadOf(data: unknown): Html | undefined {
  if (data === undefined) return undefined;
  const line = JSON.stringify(data) ?? "?";
  if (line.length <= 40) return html`<code>${line}</code>`;
  return folded(line.slice(0, 60), JSON.stringify(data, undefined, 2));
}

/** A remark or a reason: long ones unfold. */
export function remarked(text: string | undefined): Html | undefined {
  if (text === undefined || text === "") return undefined;
  return text.length <= 160 ? html`<bdi>${text}</bdi>` : folded(text.slice(0, 60), text);
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
  readonly explanation: string;
  /** What is sent besides what the person fills in. As JSON it keeps what HTML and the escapes of a page would change. */
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

/** A button, and the dialog that it opens; without `--write` only the equivalent command line. */
export function offer(given: Offer, isReadOnly: boolean, id: string = given.action): Html {
  const { action, title, explanation, fields, inputs, word, commandLine, isDangerous = false } = given;
  if (isReadOnly) return html`<li><p>${title}</p><pre tabindex="0">${commandLine}</pre></li>`;
  const asked = inputs.map(
    ({ name, label, isOptional, value }) => html`<label>${label}${isOptional ? " (may be left out)" : ""}
<input name="${name}" value="${value ?? ""}" autocomplete="off"${isOptional ? "" : html` required`}></label>`,
  );
  const typed =
    word === undefined
      ? ""
      : html`<label><span>Type <code>${word}</code> to do it</span><input name="word" autocomplete="off" required></label>`;
  return html`<li><button type="button" data-opens="${id}"${isDangerous ? html` class="danger"` : ""}>${title}</button>
<dialog id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2><p>${explanation}</p>
<form data-action="${action}" data-fields="${jsonText(fields)}">${asked}${typed}
<p class="dim">The same on the command line:</p><pre tabindex="0">${commandLine}</pre>
<p class="buttons"><button${isDangerous ? html` class="danger"` : ""}>${title}</button> <button type="button" data-closes>Do nothing</button></p>
<p role="status"></p></form></dialog></li>`;
}
