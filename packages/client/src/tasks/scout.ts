import { itemsAfter } from "../expressions-tasks.ts";
import { callStore } from "../protocol/context.ts";
import { claimableIn } from "../protocol/judge.ts";
import { readRecord } from "../record.ts";
import { attributeNames } from "../schema.ts";
import { openTaskPrefix, openTaskStart, taskAttributeNames } from "../schema-tasks.ts";
import type { Item } from "../store.ts";
import type { TaskDesk } from "./desk.ts";

/**
 * How many open tasks one look brings. More make looks rarer, but are older when they are tried, and more workers
 * then have the same ones in mind: measured with 8 workers on 1,000 tasks, see docs/primitives/tasks.md.
 */
const pageSize = 32;

/** What a walk over all open tasks has shown where none of them can be claimed now. */
export interface NothingFound {
  /** No task is waiting or running. */
  readonly isDrained: boolean;
  /** When the first of them may be claimed, if nothing changes; infinite for none. */
  readonly claimableInMs: number;
}

/**
 * Looks for tasks that can be claimed, so that many workers seldom try the same one.
 *
 * A look starts at a random task, and its tasks are tried in random order. When one turns out to be taken, somebody
 * else is at work in this place, and the next look starts elsewhere.
 */
export class Scout {
  readonly #desk: TaskDesk;
  #found: Item[] = [];
  /** Whether one look has lately shown all there are: then it may as well start at the first. */
  #isSmall = false;

  constructor(desk: TaskDesk) {
    this.#desk = desk;
  }

  /**
   * Gives the item of a task that may be claimable, none of those at the places that were tried already. Without one
   * at hand, 1 request or more.
   */
  async next(tried: ReadonlySet<string>): Promise<{ readonly item: Item } | NothingFound> {
    for (;;) {
      const item = this.#found.pop();
      if (item === undefined) {
        const nothing = await this.#look(tried);
        if (nothing !== undefined) return nothing;
      } else if (!tried.has(placeOf(item))) {
        return { item };
      }
    }
  }

  /** Somebody else is at work here. */
  moveOn(): void {
    this.#found = [];
  }

  async #look(tried: ReadonlySet<string>): Promise<NothingFound | undefined> {
    const { set, context } = this.#desk;
    const start = this.#isSmall ? openTaskPrefix : openTaskStart(context.randomness.fraction());
    let hasWrapped = start === openTaskPrefix;
    let from = start;
    let seen = 0;
    let claimableInMs = Number.POSITIVE_INFINITY;
    for (;;) {
      // Consistent: a task that was added a moment ago is found, and one that was claimed a moment ago is not tried.
      const request = { ...itemsAfter(set, from), consistent: true, limit: pageSize };
      const page = await callStore(context, (store, call) => store.query(request, call));
      const isWithin = (item: Item): boolean =>
        !hasWrapped || start === openTaskPrefix || placeOf(item) <= start;
      const open = page.items.filter((item) => placeOf(item).startsWith(openTaskPrefix));
      const within = open.filter(isWithin);
      const untried = within.filter((item) => !tried.has(placeOf(item)));
      const prospects = untried.map((item) => ({ item, inMs: this.#claimableIn(item) }));
      const found = prospects.filter(({ inMs }) => inMs <= 0).map(({ item }) => item);
      seen += within.length;
      claimableInMs = Math.min(claimableInMs, ...prospects.map(({ inMs }) => inMs));
      const last = within.at(-1);
      const isAtEnd = page.next === undefined || last === undefined || within.length < page.items.length;
      if (found.length > 0) {
        this.#found = this.#shuffled(found);
        if (!isAtEnd) this.#isSmall = false;
        return undefined;
      }
      if (!isAtEnd) {
        from = placeOf(last);
      } else if (!hasWrapped) {
        hasWrapped = true;
        from = openTaskPrefix;
      } else {
        this.#isSmall = seen < pageSize;
        return { isDrained: seen === 0, claimableInMs };
      }
    }
  }

  /** Whether a claimed task's worker may be dead is only guessed here; the claim itself finds out. */
  #claimableIn(item: Item): number {
    const { clock, clockSkewMs } = this.#desk.context;
    const record = readRecord(item);
    if (record === undefined) return Number(item[taskAttributeNames.dueAt]) - clock.now();
    const byObservation = claimableIn(this.#desk.judge.judge(record, undefined));
    return Math.min(byObservation, record.expiresAt + clockSkewMs + 1 - clock.now());
  }

  #shuffled(items: Item[]): Item[] {
    const { randomness } = this.#desk.context;
    return items
      .map((item) => ({ item, at: randomness.fraction() }))
      .sort((one, other) => one.at - other.at)
      .map(({ item }) => item);
  }
}

/** The item's sort key. */
export function placeOf(item: Item): string {
  return String(item[attributeNames.sortKey]);
}
