import type { Item, QueryRequest, ScanPage } from "@leasehold/client";
import {
  type ItemKey,
  query,
  readRecord,
  sortKeyOf,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import { itemsAfter, itemsUnder } from "./expressions.ts";
import { addedAtOf, dueAtOf, readTask, serialKeyOf } from "./record.ts";
import { openTaskPrefix, openTaskStart, openTaskStartOf, serialKeyItemKey, taskIdOf } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";

/**
 * Finds claimable tasks, so that many workers rarely try the same task.
 *
 * It starts at a random task and tries the tasks of one page in random order. When a task is already taken, another
 * worker is busy in this part of the set, so the next query starts elsewhere. When no task can be claimed, the finder
 * has read all open tasks and remembers when each may be claimed. Until the next full look, it then sends 1 small
 * query for each task that becomes due. Of the tasks with one serial key it tries one at a time.
 */
export class TaskFinder {
  readonly #context: TaskContext;
  #found: Item[] = [];
  #snapshot: TaskSnapshot | undefined;
  readonly #upcoming = new UpcomingTasks();
  readonly #serialKeys = new SerialKeys();
  /** Whether one page held all open tasks lately. Then a full look may start at the first task. */
  #isSmall = false;
  /** How many looks at all open tasks have begun: several workers of a process share this finder. */
  #fullLooks = 0;

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** The last look at all open tasks; undefined when a task to claim was found since. */
  get snapshot(): TaskSnapshot | undefined {
    return this.#snapshot;
  }

  /**
   * Gives the item of a task that may be claimable, and that is not among those tried already. 1 request or more,
   * unless an earlier page has left one.
   */
  async next(tried: TriedTasks, terms: FindTerms): Promise<{ readonly item: Item } | NothingFound> {
    for (;;) {
      const item = this.#found.pop();
      if (item === undefined) {
        const nothing = await this.#look(tried, terms);
        if (nothing !== undefined) return nothing;
      } else if (!tried.has(sortKeyOf(item))) {
        return { item };
      }
    }
  }

  /** Puts back the item that was given last: it has not been tried. */
  putBack(item: Item): void {
    this.#found.push(item);
  }

  /** Drops what was found, but does not forget it: another worker is busy in this part of the set. */
  moveOn(): void {
    for (const item of this.#found.splice(0)) this.expect(sortKeyOf(item), this.#now());
  }

  /** Notes when a task may be claimed, on the monotonic clock; undefined when it is not open any more. */
  expect(sortKey: string, at: number | undefined): void {
    this.#upcoming.set(sortKey, at);
  }

  /** Notes that a task waits for another one with its serial key. */
  block(serialKey: string, item: Item): void {
    this.expect(sortKeyOf(item), Number.POSITIVE_INFINITY);
    this.#serialKeys.block(serialKey, item);
  }

  /** Notes that this worker has let a task with a serial key go: the next one may be claimed. */
  free(serialKey: string): void {
    const next = this.#serialKeys.next(serialKey);
    if (next !== undefined) this.expect(sortKeyOf(next), this.#now());
  }

  async #look(tried: TriedTasks, terms: FindTerms): Promise<NothingFound | undefined> {
    const snapshot = this.#snapshot;
    const isYoung = snapshot !== undefined && this.#now() - snapshot.beganAt < terms.maxAgeMs;
    // There were open tasks, and none of them is left: the set may be drained by now.
    const isOutdated = snapshot !== undefined && snapshot.openTasks > 0 && this.#upcoming.isEmpty;
    if (!isYoung || isOutdated) return await this.#lookAtAll(tried, terms);
    const soonest = this.#upcoming.soonest(tried);
    if (soonest === undefined || soonest.at > this.#now()) {
      return { snapshot, claimableInMs: this.#soonestInMs(tried) };
    }
    await this.#lookAt(soonest.sortKey, tried, { ...terms, consistent: true });
    return undefined;
  }

  #soonestInMs(tried: TriedTasks): number {
    return (this.#upcoming.soonest(tried)?.at ?? Number.POSITIVE_INFINITY) - this.#now();
  }

  /** Reads a task that should be due by now, and its neighbours. 1 request. */
  async #lookAt(sortKey: string, tried: TriedTasks, terms: FindTerms): Promise<void> {
    this.#serialKeys.beginLook();
    const from = openTaskStartOf(sortKey);
    const page = await this.#page({ ...itemsAfter(this.#context.set, from), limit: taskPageSize }, terms);
    const open = page.items.filter(isOpen);
    const isAtEnd = page.next === undefined || open.length < page.items.length;
    this.#upcoming.forget(from, isAtEnd ? undefined : sortKeyOf(open.at(-1) ?? {}));
    this.#upcoming.set(sortKey, undefined);
    this.#found = this.#claimableOf(this.#readable(open), tried);
  }

  /** Reads page after page until a task can be claimed; then returns undefined. */
  async #lookAtAll(tried: TriedTasks, terms: FindTerms): Promise<NothingFound | undefined> {
    const { set, core } = this.#context;
    const { randomness } = core;
    const beganAt = this.#now();
    let limit = taskPageSize;
    this.#fullLooks += 1;
    const number = this.#fullLooks;
    this.#snapshot = undefined;
    this.#serialKeys.beginLook();
    if (!this.#isSmall) {
      const start = openTaskStart(randomness.fraction());
      const page = await this.#page({ ...itemsAfter(set, start), limit }, terms);
      this.#found = this.#claimableOf(this.#readable(page.items.filter(isOpen)), tried);
      const isPart = page.next === undefined && this.#found.some((item) => serialKeyOf(item) !== undefined);
      // The set may be small: then one look at all tasks shows which one of a serial key is the oldest.
      if (this.#found.length > 0 && !isPart) return undefined;
      if (page.next !== undefined) limit *= pageGrowth;
    }
    this.#upcoming.clear();
    this.#serialKeys.clear();
    let after: ItemKey | undefined;
    let openTasks = 0;
    do {
      const request = { ...itemsUnder(set, openTaskPrefix), limit, ...(after ? { after } : {}) };
      const page = await this.#page(request, terms);
      const open = this.#readable(page.items);
      openTasks += open.length;
      this.#found = this.#claimableOf(open, tried);
      this.#isSmall = after === undefined && page.next === undefined && openTasks < taskPageSize;
      if (this.#found.length > 0) return undefined;
      after = page.next;
      limit = Math.min(limit * pageGrowth, largestPage);
    } while (after !== undefined);
    const snapshot = { beganAt, openTasks, isConsistent: terms.consistent };
    // A later look may have found a task, of which this one knows nothing.
    if (number === this.#fullLooks) this.#snapshot = snapshot;
    return { snapshot, claimableInMs: this.#soonestInMs(tried) };
  }

  #page(request: Omit<QueryRequest, "consistent">, { consistent, signal }: FindTerms): Promise<ScanPage> {
    return query(this.#context.core, { ...request, consistent }, { signal });
  }

  /** Leaves out tasks that cannot be read, and reports each: the other tasks must still be done. */
  #readable(items: readonly Item[]): Item[] {
    const onUnreadable = unreadableIn(this.#context.core);
    const isReadable = (item: Item): boolean =>
      unlessUnreadable(() => {
        readRecord(item);
        dueAtOf(item);
        return readTask(item);
      }, onUnreadable) !== undefined;
    return items.filter(isReadable);
  }

  /** Picks tasks that can be claimed, in random order and at most a page; remembers when the others can be. */
  #claimableOf(items: readonly Item[], tried: TriedTasks): Item[] {
    const { set, core } = this.#context;
    const isBusy = (serialKey: string): boolean => tried.has(serialKeyItemKey(set, serialKey).sk);
    const ready: Item[] = [];
    for (const item of items) {
      const sortKey = sortKeyOf(item);
      const inMs = this.#claimableIn(item);
      const at = tried.get(sortKey) ?? (inMs > 0 ? this.#now() + inMs : undefined);
      const key = serialKeyOf(item);
      if (at === undefined) ready.push(item);
      // Its key was busy: a full look has forgotten that it waits.
      else if (key !== undefined && tried.has(sortKey) && isBusy(key)) this.block(key, item);
      else this.expect(sortKey, at);
    }
    const { free, blocked } = this.#serialKeys.part(items, ready, isBusy);
    for (const item of blocked) this.expect(sortKeyOf(item), Number.POSITIVE_INFINITY);
    const found = free.map((item) => ({ item, at: core.randomness.fraction() }));
    found.sort((one, other) => one.at - other.at);
    return found.slice(0, taskPageSize).map(({ item }) => item);
  }

  /** Only a guess if a worker may be dead: the claim itself decides. */
  #claimableIn(item: Item): number {
    const record = readRecord(item);
    if (record === undefined) return dueAtOf(item) - this.#context.core.clock.now();
    return this.#context.core.detector.judge(record).claimableInMs;
  }

  #now(): number {
    return this.#context.core.clock.monotonic();
  }
}

/**
 * How many open tasks one query brings. With more, queries are rarer, but their results are older when they are
 * tried, and more workers try the same tasks. Measured with 8 workers on 1,000 tasks: see docs/primitives/tasks.md.
 */
export const taskPageSize = 32;

/** A page without a claimable task is followed by a larger one, because a full look has to read all tasks. */
const pageGrowth = 4;
const largestPage = 1_000;

/** The result of a look at all open tasks that found none to claim. */
export interface TaskSnapshot {
  /** On the monotonic clock. */
  readonly beganAt: number;
  /** How many tasks were waiting or running. Tasks that cannot be read are not counted. */
  readonly openTasks: number;
  /** Whether it has seen every earlier write. */
  readonly isConsistent: boolean;
}

/** As far as is known, no task can be claimed now. */
export interface NothingFound {
  readonly snapshot: TaskSnapshot;
  /** When the first of the tasks may be claimed, if nothing changes. Infinite when there is none. */
  readonly claimableInMs: number;
}

/** By sort key, the tasks and serial keys that could not be claimed, and when each may be, on the monotonic clock. */
export type TriedTasks = ReadonlyMap<string, number>;

/** How tasks are looked for. */
export interface FindTerms {
  /** A snapshot younger than this is used again. Only tasks that became due since are looked at. */
  readonly maxAgeMs: number;
  /** A consistent query sees every earlier write, and costs twice as much. */
  readonly consistent: boolean;
  /** Ends the look. @default - none */
  readonly signal?: AbortSignal | undefined;
}

function isOpen(item: Item): boolean {
  return sortKeyOf(item).startsWith(openTaskPrefix);
}

/** Open tasks that could not be claimed when they were last seen, and when each may be, on the monotonic clock. */
export class UpcomingTasks {
  /** By sort key. */
  #times = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#times.size === 0;
  }

  /** Remembers when a task may be claimed; undefined forgets the task. */
  set(sortKey: string, at: number | undefined): void {
    this.#times.delete(sortKey);
    if (at === undefined) return;
    this.#times.set(sortKey, at);
    // Cut in bulk, so that each call costs little.
    if (this.#times.size < 2 * mostUpcomingTasks) return;
    const soonest = [...this.#times].sort(([, one], [, other]) => one - other).slice(0, mostUpcomingTasks);
    this.#times = new Map(soonest);
  }

  clear(): void {
    this.#times.clear();
  }

  /** Forgets the tasks after one sort key, up to and including another where one is given. */
  forget(after: string, upTo: string | undefined): void {
    for (const sortKey of this.#times.keys()) {
      if (sortKey > after && (upTo === undefined || sortKey <= upTo)) this.#times.delete(sortKey);
    }
  }

  /** Gives the task that may be claimed first, of those that have not been tried. */
  soonest(tried: ReadonlyMap<string, number>): { readonly sortKey: string; readonly at: number } | undefined {
    let first: { readonly sortKey: string; readonly at: number } | undefined;
    for (const [sortKey, at] of this.#times) {
      if ((first === undefined || at < first.at) && !tried.has(sortKey)) first = { sortKey, at };
    }
    return first;
  }
}

/** How many tasks are remembered: those that may be claimed first. A later look finds the others. */
const mostUpcomingTasks = 1_000;

/** The serial keys of the open tasks that the looks of a finder have shown. */
export class SerialKeys {
  /** Keys of tasks that a worker has, as the current look has shown them. */
  readonly #busy = new Set<string>();
  /** Tasks that wait for another task of their key, the oldest first. */
  readonly #blocked = new Map<string, Item[]>();
  #count = 0;

  /** A look begins: the keys may have become free since the last one. */
  beginLook(): void {
    this.#busy.clear();
  }

  /** Forgets the tasks that wait. */
  clear(): void {
    this.#blocked.clear();
    this.#count = 0;
  }

  /**
   * Parts the tasks of a page that may be claimed by themselves. `free`: those without a key, and of each key the task
   * that a worker has, or else the oldest one. `blocked`: the others, which are remembered.
   */
  part(
    page: readonly Item[],
    ready: readonly Item[],
    isBusy: (serialKey: string) => boolean,
  ): { readonly free: readonly Item[]; readonly blocked: readonly Item[] } {
    for (const item of page) {
      const key = serialKeyOf(item);
      if (key !== undefined && readRecord(item) !== undefined) this.#busy.add(key);
    }
    const free: Item[] = [];
    const blocked: Item[] = [];
    const taken = new Set<string>();
    for (const item of [...ready].sort(oldestFirst)) {
      const key = serialKeyOf(item);
      const isWaiting = key !== undefined && readRecord(item) === undefined;
      if (isWaiting && (taken.has(key) || this.#busy.has(key) || isBusy(key))) {
        blocked.push(item);
        this.block(key, item);
        continue;
      }
      if (isWaiting) taken.add(key);
      free.push(item);
    }
    return { free, blocked };
  }

  /** Remembers a task that waits for another task of its key. */
  block(key: string, item: Item): void {
    const items = this.#blocked.get(key) ?? [];
    if (this.#count >= mostBlocked || items.some((other) => sortKeyOf(other) === sortKeyOf(item))) return;
    this.#count += 1;
    this.#blocked.set(key, [...items, item].sort(oldestFirst));
  }

  /** Gives the task that is next when its key is free, and forgets it. */
  next(key: string): Item | undefined {
    const [first, ...others] = this.#blocked.get(key) ?? [];
    this.#blocked.delete(key);
    if (first === undefined) return undefined;
    this.#count -= 1;
    if (others.length > 0) this.#blocked.set(key, others);
    return first;
  }
}

/** How many tasks are remembered. A later look finds the others. */
const mostBlocked = 1_000;

function oldestFirst(one: Item, other: Item): number {
  const [id, otherId] = [taskIdOf(sortKeyOf(one)), taskIdOf(sortKeyOf(other))];
  return addedAtOf(one) - addedAtOf(other) || (id < otherId ? -1 : 1);
}
