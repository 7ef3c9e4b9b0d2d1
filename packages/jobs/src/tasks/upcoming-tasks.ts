/** How many tasks are remembered: the soonest ones. What comes after them is found by a later survey. */
const mostRemembered = 1_000;

/** Open tasks that could not be claimed when they were last seen, and when they may be, on the monotonic clock. */
export class UpcomingTasks {
  #times = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#times.size === 0;
  }

  /** Remembers when a task may be claimed; undefined forgets it. */
  set(place: string, at: number | undefined): void {
    this.#times.delete(place);
    if (at === undefined) return;
    this.#times.set(place, at);
    // Cut in bulk, so that each costs little.
    if (this.#times.size < 2 * mostRemembered) return;
    const soonest = [...this.#times].sort(([, one], [, other]) => one - other).slice(0, mostRemembered);
    this.#times = new Map(soonest);
  }

  clear(): void {
    this.#times.clear();
  }

  /** Forgets the tasks behind one place, up to and including another where one is given. */
  forget(behind: string, upTo: string | undefined): void {
    for (const place of this.#times.keys()) {
      if (place > behind && (upTo === undefined || place <= upTo)) this.#times.delete(place);
    }
  }

  /** Gives the task that may be claimed first, of those that have not been tried. */
  soonest(tried: ReadonlyMap<string, number>): { readonly place: string; readonly at: number } | undefined {
    let first: { readonly place: string; readonly at: number } | undefined;
    for (const [place, at] of this.#times) {
      if ((first === undefined || at < first.at) && !tried.has(place)) first = { place, at };
    }
    return first;
  }
}
