import type { Item } from "@leasehold/client";
import { readRecord, sortKeyOf } from "@leasehold/client/internal";
import { addedAtOf, serialKeyOf } from "./record.ts";
import { taskIdOf } from "./schema.ts";

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
