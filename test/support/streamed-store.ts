import type { TransactionEntry, TransactionResult, UpdateRequest, UpdateResult } from "@leasehold/client";
import { toAttributeValues } from "@leasehold/client/internal";
import type { ItemKey } from "@leasehold/client/schema";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import type { Template } from "aws-cdk-lib/assertions";
import { compileFilters } from "../../tools/local/src/streams/filter.ts";
import { only } from "./constructs.ts";

/** A table in memory, whose stream has the filters of a template's reader. */
export class StreamedStore extends MemoryLeaseStore {
  /** Each change since the last look: the kind of its item, and whether the reader is called for it. */
  readonly #changes: [kind: string, isCalled: boolean][] = [];
  readonly #passes: ReturnType<typeof compileFilters>;

  constructor(template: Template) {
    super();
    const { Filters } = only(template.findResources("AWS::Lambda::EventSourceMapping")).Properties
      .FilterCriteria;
    // Lambda takes no more.
    if (Filters.length > 5) throw new Error(`${Filters.length} filters`);
    this.#passes = compileFilters(Filters.map(({ Pattern }: { Pattern: string }) => JSON.parse(Pattern)));
  }

  /** The changes since the last look. */
  look(): readonly (readonly [kind: string, isCalled: boolean])[] {
    return this.#changes.splice(0);
  }

  override updateNow(request: UpdateRequest): UpdateResult {
    return this.watch([request.key], () => super.updateNow(request));
  }

  override transactNow(entries: readonly TransactionEntry[]): TransactionResult {
    return this.watch(
      entries.map(({ key }) => key),
      () => super.transactNow(entries),
    );
  }

  /** Shows the stream what a change does to these items. */
  watch<T>(keys: readonly ItemKey[], change: () => T): T {
    const before = keys.map((key) => this.peek(key));
    const result = change();
    for (const [index, { pk, sk }] of keys.entries()) {
      const [old, now] = [before[index], this.peek({ pk, sk })];
      if (old === now) continue;
      const eventName = old === undefined ? "INSERT" : now === undefined ? "REMOVE" : "MODIFY";
      const dynamodb = {
        Keys: toAttributeValues({ pk, sk }),
        ...(old && { OldImage: toAttributeValues(old) }),
        ...(now && { NewImage: toAttributeValues(now) }),
      };
      this.#changes.push([sk.replace(/#.*/, ""), this.#passes({ eventName, dynamodb } as never)]);
    }
    return result;
  }
}
