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
