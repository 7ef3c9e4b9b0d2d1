import type { Item, QueryRequest, ScanPage } from "@leasehold/client";
import {
  attributeNames,
  callStore,
  claimableIn,
  type ItemKey,
  readRecord,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import type { TaskDesk } from "./desk.ts";
import { itemsAfter, itemsUnder } from "./expressions.ts";
import { dueAtOf, readTask } from "./record.ts";
import { openTaskPrefix, openTaskStart, openTaskStartOf } from "./schema.ts";
import { UpcomingTasks } from "./upcoming-tasks.ts";

/**
 * How many open tasks one look brings. More make looks rarer, but are older when they are tried, and more workers
 * then have the same ones in mind: measured with 8 workers on 1,000 tasks, see docs/primitives/tasks.md.
 */
export const pageSize = 32;

/** Where a page brought nothing, the next one is larger, for a survey that finds nothing has to see all tasks. */
const pageGrowth = 4;
const largestPage = 1_000;

/** A look at all open tasks that has found none to claim. */
export interface Survey {
  /** On the monotonic clock. */
  readonly beganAt: number;
  /** How many tasks were waiting or running; those that cannot be read are nobody's to do. */
  readonly openTasks: number;
  /** Whether it has seen every earlier write. */
  readonly isConsistent: boolean;
}

/** Nothing can be claimed now, as far as is known. */
export interface NothingFound {
  readonly survey: Survey;
  /** When the first of the tasks may be claimed, if nothing changes; infinite for none. */
  readonly claimableInMs: number;
}

/** The places that were tried in vain, and when each may be claimed, on the monotonic clock. */
export type Tried = ReadonlyMap<string, number>;

/** What a look is for. */
export interface LookTerms {
  /** A survey that is younger than this is relied on, but for tasks that have come due since. */
  readonly maxAgeMs: number;
  /** A consistent survey sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
}

/**
 * Looks for tasks that can be claimed, so that many workers seldom try the same one.
 *
 * A look starts at a random task, and its tasks are tried in random order. When one turns out to be taken, somebody
 * else is at work in this place, and the next look starts elsewhere. Where there is nothing to claim, it has seen all
 * open tasks, and remembers when each may be claimed: until the next survey, 1 small look for a task that comes due is
 * all that it takes.
 */
export class Scout {
  readonly #desk: TaskDesk;
  #found: Item[] = [];
  #survey: Survey | undefined;
  readonly #upcoming = new UpcomingTasks();
  /** Whether one page has lately shown all there are: then it may as well start at the first. */
  #isSmall = false;

  constructor(desk: TaskDesk) {
    this.#desk = desk;
  }

  /** The last look at all open tasks, unless something was found to claim since. */
  get survey(): Survey | undefined {
    return this.#survey;
  }

  /**
   * Gives the item of a task that may be claimable, none of those at the places that were tried already. Without one
   * at hand, 1 request or more.
   */
  async next(tried: Tried, terms: LookTerms): Promise<{ readonly item: Item } | NothingFound> {
    for (;;) {
      const item = this.#found.pop();
      if (item === undefined) {
        const nothing = await this.#look(tried, terms);
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

  /** A task may be claimed at a time of the monotonic clock; undefined where it is not open any more. */
  expect(place: string, at: number | undefined): void {
    this.#upcoming.set(place, at);
  }

  async #look(tried: Tried, terms: LookTerms): Promise<NothingFound | undefined> {
    const survey = this.#survey;
    const isYoung = survey !== undefined && this.#now() - survey.beganAt < terms.maxAgeMs;
    // Tasks that were open when it was made and of which none is left: the set may be drained by now.
    const isOutdated = survey !== undefined && survey.openTasks > 0 && this.#upcoming.isEmpty;
    if (!isYoung || isOutdated) return await this.#surveyAll(tried, terms.consistent);
    const soonest = this.#upcoming.soonest(tried);
    if (soonest === undefined || soonest.at > this.#now()) {
      return { survey, claimableInMs: this.#soonestInMs(tried) };
    }
    await this.#lookAt(soonest.place, tried);
    return undefined;
  }

  #soonestInMs(tried: Tried): number {
    return (this.#upcoming.soonest(tried)?.at ?? Number.POSITIVE_INFINITY) - this.#now();
  }

  /** Looks at a task that should be due by now, and at its neighbours. 1 request. */
  async #lookAt(place: string, tried: Tried): Promise<void> {
    const from = openTaskStartOf(place);
    const page = await this.#page({ ...itemsAfter(this.#desk.set, from), limit: pageSize }, true);
    const open = this.#readable(page.items.filter(isOpen));
    const isAtEnd = page.next === undefined || open.length < page.items.length;
    this.#upcoming.forget(from, isAtEnd ? undefined : placeOf(open.at(-1) ?? {}));
    this.#upcoming.set(place, undefined);
    this.#found = this.#claimableOf(open, tried);
  }

  /** Gives undefined as soon as something is found. */
  async #surveyAll(tried: Tried, consistent: boolean): Promise<NothingFound | undefined> {
    const { set, context } = this.#desk;
    const beganAt = this.#now();
    let limit = pageSize;
    this.#survey = undefined;
    if (!this.#isSmall) {
      const start = openTaskStart(context.randomness.fraction());
      const page = await this.#page({ ...itemsAfter(set, start), limit }, consistent);
      this.#found = this.#claimableOf(this.#readable(page.items.filter(isOpen)), tried);
      if (this.#found.length > 0) return undefined;
      if (page.next !== undefined) limit *= pageGrowth;
    }
    this.#upcoming.clear();
    let after: ItemKey | undefined;
    let openTasks = 0;
    do {
      const request = { ...itemsUnder(set, openTaskPrefix), limit, ...(after ? { after } : {}) };
      const page = await this.#page(request, consistent);
      const open = this.#readable(page.items);
      openTasks += open.length;
      this.#found = this.#claimableOf(open, tried);
      this.#isSmall = after === undefined && page.next === undefined && openTasks < pageSize;
      if (this.#found.length > 0) return undefined;
      after = page.next;
      limit = Math.min(limit * pageGrowth, largestPage);
    } while (after !== undefined);
    this.#survey = { beganAt, openTasks, isConsistent: consistent };
    return { survey: this.#survey, claimableInMs: this.#soonestInMs(tried) };
  }

  #page(request: Omit<QueryRequest, "consistent">, consistent: boolean): Promise<ScanPage> {
    return callStore(this.#desk.context, (store, call) => store.query({ ...request, consistent }, call));
  }

  /** Passes over tasks that cannot be read, and tells of each: they must not keep the others from being done. */
  #readable(items: readonly Item[]): Item[] {
    const onUnreadable = unreadableIn(this.#desk.context);
    const isReadable = (item: Item): boolean =>
      unlessUnreadable(() => {
        readRecord(item);
        dueAtOf(item);
        return readTask(item);
      }, onUnreadable) !== undefined;
    return items.filter(isReadable);
  }

  /** Picks what can be claimed, in random order, no more than a page of it; remembers when the others can. */
  #claimableOf(items: readonly Item[], tried: Tried): Item[] {
    const { randomness } = this.#desk.context;
    const found: { readonly item: Item; readonly at: number }[] = [];
    for (const item of items) {
      const place = placeOf(item);
      const inMs = this.#claimableIn(item);
      const at = tried.get(place) ?? (inMs > 0 ? this.#now() + inMs : undefined);
      if (at !== undefined) this.expect(place, at);
      else found.push({ item, at: randomness.fraction() });
    }
    found.sort((one, other) => one.at - other.at);
    return found.slice(0, pageSize).map(({ item }) => item);
  }

  /** Whether a claimed task's worker may be dead is only guessed here; the claim itself finds out. */
  #claimableIn(item: Item): number {
    const { clock } = this.#desk.context;
    const record = readRecord(item);
    if (record === undefined) return dueAtOf(item) - clock.now();
    return claimableIn(this.#desk.judge.judge(record));
  }

  #now(): number {
    return this.#desk.context.clock.monotonic();
  }
}

/** The item's sort key. */
export function placeOf(item: Item): string {
  return String(item[attributeNames.sortKey]);
}

function isOpen(item: Item): boolean {
  return placeOf(item).startsWith(openTaskPrefix);
}
