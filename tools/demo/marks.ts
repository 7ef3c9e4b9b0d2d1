import type { styleText } from "node:util";

/** How text is coloured, in the words of node:util. */
export type Style = Parameters<typeof styleText>[0];

/** How a kind of line is marked. */
export interface Mark {
  readonly mark: string;
  readonly word: string;
  readonly style: Style;
  /** Whether it is shown where not everything is: what goes wrong in the plan, and what becomes of it. */
  readonly incident?: true;
}

/** What a line can be about, and how it is marked. */
export const marks = {
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

/** The systems of the app, as lines and the audit name them, and how they are coloured. */
export const systems = {
  orders: "magenta",
  imports: "cyan",
  stock: "green",
  tasks: "yellow",
  tickets: "blue",
} as const satisfies Record<string, Style>;

/** A system of the app. */
export type System = keyof typeof systems;

/** The systems, in the order in which they are shown. */
export const systemNames: readonly System[] = Object.keys(systems) as System[];

/** Wide enough for the name of every system. */
export const systemWidth: number = Math.max(...systemNames.map(({ length }) => length));

const instanceStyles: readonly Style[] = ["cyan", "yellow", "magenta", "green", "blue"];

/** Gives a name the same colour wherever it stands. */
export function styleOf(who: string): Style {
  const index = [...who].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return instanceStyles[index % instanceStyles.length] ?? "bold";
}
