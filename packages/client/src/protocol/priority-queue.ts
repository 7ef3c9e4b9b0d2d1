interface Entry<Item> {
  readonly item: Item;
  readonly priority: number;
  /** Among equal priorities the earlier entry comes first. */
  readonly order: number;
  /** The position in the heap. */
  index: number;
}

/**
 * Items in the order of a number, the smallest first, and of their arrival where the numbers are equal.
 *
 * Looking at the first one takes constant time; adding, moving and removing one takes time that grows with the
 * logarithm of their number.
 */
export class PriorityQueue<Item> {
  readonly #heap: Entry<Item>[] = [];
  readonly #entries = new Map<Item, Entry<Item>>();
  #arrivals = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The item with the smallest priority. */
  get first(): { readonly item: Item; readonly priority: number } | undefined {
    return this.#heap[0];
  }

  /** Adds an item, or gives one that is there another priority. */
  set(item: Item, priority: number): void {
    this.delete(item);
    const entry = { item, priority, order: this.#arrivals++, index: this.#heap.length };
    this.#entries.set(item, entry);
    this.#heap.push(entry);
    this.#rise(entry);
  }

  /** Removes an item, if it is there. */
  delete(item: Item): void {
    const entry = this.#entries.get(item);
    if (entry === undefined) return;
    this.#entries.delete(item);
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#put(last, entry.index);
    this.#rise(last);
    this.#sink(last);
  }

  /** Removes the item with the smallest priority, and gives it. */
  take(): Item | undefined {
    const item = this.#heap[0]?.item;
    if (item !== undefined) this.delete(item);
    return item;
  }

  #rise(entry: Entry<Item>): void {
    for (;;) {
      const parent = this.#heap[(entry.index - 1) >> 1];
      if (parent === undefined || isBefore(parent, entry)) return;
      this.#swap(entry, parent);
    }
  }

  #sink(entry: Entry<Item>): void {
    for (;;) {
      const left = this.#heap[2 * entry.index + 1];
      const right = this.#heap[2 * entry.index + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || isBefore(entry, child)) return;
      this.#swap(entry, child);
    }
  }

  #swap(one: Entry<Item>, other: Entry<Item>): void {
    const { index } = one;
    this.#put(one, other.index);
    this.#put(other, index);
  }

  #put(entry: Entry<Item>, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

function isBefore(one: Entry<unknown>, other: Entry<unknown>): boolean {
  return one.priority < other.priority || (one.priority === other.priority && one.order < other.order);
}
