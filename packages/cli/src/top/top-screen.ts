import type { LeaseOperator } from "@leasehold/client/admin";
import { mayPass, sleep } from "@leasehold/client/internal";
import type { Call, Command } from "../command.ts";
import { operatorOn } from "../commands/shared/intervention.ts";
import { keyReport } from "../commands/shared/key-report.ts";
import { usualPollMs } from "../commands/shared/polling.ts";
import { priceOfTable } from "../commands/shared/table-price.ts";
import type { Connection } from "../connection.ts";
import { messageOf } from "../exit-codes.ts";
import { DryRunEnd } from "../request-log.ts";
import { type Key, Screen } from "../terminal/screen.ts";
import { shown } from "../terminal/text.ts";
import { pastHolders } from "../view/holders.ts";
import type { KeyRow } from "../view/key-rows.ts";
import { RateMeter } from "../view/rate-meter.ts";
import { type RowOrder, selectRows } from "../view/row-selection.ts";
import { tableEvents } from "../view/table-events.ts";
import { readTable, type TableSnapshot, usualMostItems } from "../view/table-snapshot.ts";
import { rowName, scrolled, topLines } from "./top-view.ts";

/** The content of the screen, and its rhythm. */
export interface TopOptions {
  readonly prefix: string | undefined;
  readonly sort: RowOrder;
  readonly all: boolean;
  readonly scan: boolean;
  /** The pause after a look. */
  readonly pauseAfter: (seen: TableSnapshot) => number;
}

/** Everything about one key, as it was last read. */
interface Detail {
  readonly key: string;
  readonly lines: readonly string[];
  readonly from: number;
}

const orders: readonly RowOrder[] = ["key", "age", "ends"];
const blinkMs = 600;
const shownHolders = 5;

/**
 * The full screen: it reads the table repeatedly, and reacts to keys. It writes nothing by itself: x and X run the
 * commands stop and break, with their questions, for the chosen lease.
 */
export class TopScreen {
  readonly #call: Call;
  readonly #options: TopOptions;
  readonly #screen: Screen;
  readonly #meter = new RateMeter();
  readonly #ending = new AbortController();
  #connection!: Connection;
  #operator!: LeaseOperator;
  #snapshot: TableSnapshot | undefined;
  #rows: readonly KeyRow[] = [];
  #everyMs = usualPollMs;
  #sort: RowOrder;
  #filter = "";
  #isFiltering = false;
  #selected: string | undefined;
  #changed: ReadonlySet<string> = new Set();
  #trouble: string | undefined;
  #detail: Detail | undefined;
  /** A command that is under way for a pressed key. */
  #action: Promise<void> = Promise.resolve();

  /** Throws a UsageError without a terminal. */
  constructor(call: Call, options: TopOptions) {
    this.#call = call;
    this.#options = options;
    this.#sort = options.sort;
    this.#screen = new Screen(
      call.terminal,
      (key) => this.#pressed(key),
      () => this.#draw(),
    );
  }

  /** Resolves when the user quits. Rejects when the command is interrupted, or when the table cannot be read. */
  async run(): Promise<void> {
    const { signal } = this.#call;
    this.#connection = await this.#call.connect();
    this.#operator = operatorOn(this.#connection, this.#call);
    this.#screen.open();
    try {
      this.#draw();
      await this.#lookAgainAndAgain(AbortSignal.any([signal, this.#ending.signal]));
    } catch (error) {
      if (!this.#ending.signal.aborted || signal.aborted) throw error;
    } finally {
      await this.#action;
      this.#screen.close();
    }
  }

  async #lookAgainAndAgain(signal: AbortSignal): Promise<void> {
    const { clock } = this.#call;
    while (!this.#call.terminal.isClosed) {
      await this.#look(signal);
      this.#draw();
      const everyMs = this.#everyMs;
      await sleep(clock, Math.min(blinkMs, everyMs), signal);
      this.#changed = new Set();
      this.#draw();
      await sleep(clock, Math.max(0, everyMs - blinkMs), signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { client, describeTable } = this.#connection;
    const { prefix, scan } = this.#options;
    const mostItems = scan ? Number.POSITIVE_INFINITY : usualMostItems;
    try {
      const before = this.#snapshot;
      const after = await priceOfTable(describeTable, () => readTable(client, { prefix, mostItems, signal }));
      const events = before === undefined ? [] : tableEvents(before, after);
      this.#meter.add(before, after, events);
      this.#snapshot = after;
      this.#everyMs = this.#options.pauseAfter(after);
      this.#select();
      const keys = new Set(events.map(({ key }) => key));
      this.#changed = new Set(this.#rows.filter(({ key }) => keys.has(key)).map(rowName));
      await this.#readDetailAgain();
      this.#trouble = undefined;
    } catch (error) {
      if (!mayPass(error)) throw error;
      this.#trouble = shown(error.message);
    }
  }

  #select(): void {
    if (this.#snapshot === undefined) return;
    const { all } = this.#options;
    this.#rows = selectRows(this.#snapshot, { all, sort: this.#sort }).filter(({ key }) =>
      key.includes(this.#filter),
    );
    const names = this.#rows.map(rowName);
    if (this.#selected === undefined || !names.includes(this.#selected)) this.#selected = names[0];
  }

  #draw(): void {
    const { columns, rows } = this.#screen;
    const { terminal, global } = this.#call;
    const size = { columns, rows, paint: terminal.paint };
    if (this.#detail !== undefined) {
      this.#screen.draw(scrolled(this.#detail.lines, this.#detail.from, size));
      return;
    }
    const frame = {
      place: this.#connection.place,
      isReadOnly: global["read-only"],
      everyMs: this.#everyMs,
      snapshot: this.#snapshot,
      rows: this.#rows,
      rates: this.#meter.rates,
      sort: this.#sort,
      filter: this.#filter,
      isFiltering: this.#isFiltering,
      selected: this.#selected,
      changed: this.#changed,
      trouble: this.#trouble,
    };
    this.#screen.draw(topLines(frame, size));
  }

  #pressed(key: Key): void {
    if (key === "ctrl-c") this.#ending.abort();
    else if (this.#detail !== undefined) this.#pressedInDetail(key, this.#detail);
    else if (this.#isFiltering) this.#pressedInFilter(key);
    else this.#listKeys[key]?.();
    this.#draw();
  }

  #pressedInDetail(key: Key, detail: Detail): void {
    const last = Math.max(0, detail.lines.length - this.#screen.rows + 1);
    const step = { down: 1, j: 1, up: -1, k: -1, pagedown: 10, " ": 10, pageup: -10 }[key];
    if (step !== undefined)
      this.#detail = { ...detail, from: Math.max(0, Math.min(last, detail.from + step)) };
    else if (["q", "escape", "return", "left"].includes(key)) this.#detail = undefined;
  }

  #pressedInFilter(key: Key): void {
    if (key === "return") this.#isFiltering = false;
    else if (key === "escape") {
      this.#isFiltering = false;
      this.#filter = "";
    } else if (key === "backspace") this.#filter = this.#filter.slice(0, -1);
    else if (key.length === 1) this.#filter += key;
    this.#select();
  }

  readonly #listKeys: Readonly<Record<Key, () => void>> = {
    q: () => this.#ending.abort(),
    s: () => {
      this.#sort = orders[(orders.indexOf(this.#sort) + 1) % orders.length] ?? "key";
      this.#select();
    },
    "/": () => {
      this.#isFiltering = true;
    },
    escape: () => {
      this.#filter = "";
      this.#select();
    },
    ...both("down", "j", () => this.#choose(1)),
    ...both("up", "k", () => this.#choose(-1)),
    pagedown: () => this.#choose(10),
    pageup: () => this.#choose(-10),
    return: () =>
      this.#begin(async ({ key }) => {
        this.#detail = { key, lines: await this.#reportOf(key), from: 0 };
      }),
    x: () => this.#begin((row) => this.#intervene(import("../commands/stop.ts"), row)),
    X: () => this.#begin((row) => this.#intervene(import("../commands/break.ts"), row)),
  };

  #choose(step: number): void {
    const at = this.#rows.findIndex((row) => rowName(row) === this.#selected);
    const next = this.#rows[Math.max(0, Math.min(this.#rows.length - 1, at + step))];
    this.#selected = next && rowName(next);
  }

  /** Acts on the chosen row, after earlier actions have ended. */
  #begin(task: (row: KeyRow) => Promise<void>): void {
    const row = this.#rows.find((one) => rowName(one) === this.#selected);
    if (row === undefined) return;
    this.#action = this.#action
      .then(() => task(row))
      .catch((error: unknown) => {
        this.#trouble = shown(messageOf(error));
      })
      .then(() => this.#draw());
  }

  async #readDetailAgain(): Promise<void> {
    const key = this.#detail?.key;
    if (key === undefined) return;
    const lines = await this.#reportOf(key);
    // The user may have gone back meanwhile.
    if (this.#detail?.key === key) this.#detail = { ...this.#detail, lines };
  }

  async #reportOf(key: string): Promise<readonly string[]> {
    const details = await this.#operator.describe(key);
    const holders = await pastHolders(this.#operator, details, shownHolders);
    const { terminal, global } = this.#call;
    const zone = global.local ? "local" : "utc";
    const report = { columns: this.#screen.columns, paint: terminal.paint, zone, isWide: false } as const;
    return keyReport(details, holders, report);
  }

  /** Leaves the screen to a command with questions, and comes back. */
  async #intervene(loading: Promise<{ readonly default: unknown }>, { key, lease }: KeyRow): Promise<void> {
    const { global, terminal, signal } = this.#call;
    if (global["read-only"]) throw new Error("--read-only is on: nothing done");
    const command = (await loading).default as Command;
    this.#screen.close();
    try {
      const flags = {
        token: lease?.token,
        place: undefined,
        reason: undefined,
        wait: undefined,
        force: false,
      };
      // Each action on another's lease needs its own agreement.
      await command.run({ ...this.#call, operands: [key], flags, global: { ...global, yes: false } });
    } catch (error) {
      if (signal.aborted) throw error;
      terminal.complain(
        error instanceof DryRunEnd ? error.message : `leasehold: ${(error as Error).message}`,
      );
    }
    await terminal.ask("Enter goes back to the list ", signal);
    this.#screen.open();
  }
}

/** Two keys that do the same. */
function both(one: Key, other: Key, task: () => void): Readonly<Record<Key, () => void>> {
  return { [one]: task, [other]: task };
}
