import type { UpdateRequest } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import type { Host } from "./host.ts";
import type { Table } from "./table.ts";
import type { World } from "./world.ts";

/** What a host believes to hold. */
export interface Holding {
  readonly held: boolean;
  readonly fencingToken: number;
}

interface Belief {
  readonly process: Host;
  readonly holding: Holding;
  readonly key: UpdateRequest["key"];
}

/**
 * What hosts believe to hold: true as long as they believe it, so that no two can believe in the same thing.
 *
 * A process that is frozen goes on believing, by its clock; where that stands still, it is asked when it has woken.
 */
export class Beliefs {
  readonly #world: World;
  readonly #table: Table;
  readonly #beliefs = new Set<Belief>();

  constructor(world: World, table: Table) {
    this.#world = world;
    this.#table = table;
    world.observe(() => this.#check());
  }

  add(process: Host, holding: Holding, key: UpdateRequest["key"]): void {
    this.#beliefs.add({ process, holding, key });
  }

  #check(): void {
    for (const belief of this.#beliefs) {
      const { process, holding, key } = belief;
      if (process.isSuspended) continue;
      if (process.isDead || !holding.held) {
        this.#beliefs.delete(belief);
        continue;
      }
      const item = this.#table.peek(key);
      const { token, fence, owner } = attributeNames;
      if (item?.[token] !== undefined && item[fence] === holding.fencingToken) continue;
      this.#beliefs.delete(belief);
      const truth = item?.[token] === undefined ? "nobody's" : `held by ${item[owner]} with ${item[fence]}`;
      const claim = `${process.name} believes to hold ${key.pk} ${key.sk} with ${holding.fencingToken}`;
      this.#world.fault(`${claim}, which is ${truth}`);
    }
  }
}
