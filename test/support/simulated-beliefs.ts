import type { Item, UpdateRequest } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import type { SimulatedProcess } from "./simulated-process.ts";

/** What a process believes to hold. */
interface Holding {
  readonly held: boolean;
  readonly fencingToken: number;
}

interface Belief {
  readonly process: SimulatedProcess;
  readonly holding: Holding;
  readonly key: UpdateRequest["key"];
}

/** The part of a world that beliefs are judged by. */
interface Truth {
  readonly table: { readonly memory: { peek(key: UpdateRequest["key"]): Item | undefined } };
  fault(text: string): void;
}

/**
 * What processes believe to hold: true as long as they believe it, so that no two can believe in the same thing.
 *
 * A process that is frozen goes on believing, by its clock.
 */
export class Beliefs {
  readonly #truth: Truth;
  readonly #beliefs = new Set<Belief>();

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  add(process: SimulatedProcess, holding: Holding, key: UpdateRequest["key"]): void {
    this.#beliefs.add({ process, holding, key });
    this.check();
  }

  /** To be called whenever the table has changed. */
  check(): void {
    for (const belief of this.#beliefs) {
      const { process, holding, key } = belief;
      if (process.isDead || !holding.held) {
        this.#beliefs.delete(belief);
        continue;
      }
      const item = this.#truth.table.memory.peek(key);
      const { token, fence, owner } = attributeNames;
      if (item?.[token] !== undefined && item[fence] === holding.fencingToken) continue;
      this.#beliefs.delete(belief);
      const truth = item?.[token] === undefined ? "nobody's" : `held by ${item[owner]} with ${item[fence]}`;
      const claim = `${process.name} believes to hold ${key.pk} ${key.sk} with ${holding.fencingToken}`;
      this.#truth.fault(`${claim}, which is ${truth}`);
    }
  }
}
