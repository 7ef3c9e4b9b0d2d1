import { breakLease, type LeasePlace, leasesByPrefix, leasesOf, requestRevocation } from "./expressions.ts";
import { lookAtAll } from "./looks.ts";
import { callStore, type ProtocolContext } from "./protocol/context.ts";
import { type LeaseRecord, readRecord, wasBroken } from "./record.ts";
import { type ItemKey, leaseItemKey, limits } from "./schema.ts";
import { check, checkKey, checkKnown, checkText } from "./validation.ts";

/** Which of a key's leases is meant, where it has several. */
export interface PlaceOptions {
  /** The lease's sort key, as `LeaseRecord.place` tells it. @default "lease", the lock's own */
  readonly place?: string;
}

/** Options of a list. */
export interface ListOptions {
  /** What keys begin with. @default - all keys */
  readonly prefix?: string;
  /** Whether the leases of the other primitives are wanted too: permits, readers, runs, tasks. @default false */
  readonly all?: boolean;
}

/** How many items DynamoDB looks at for one page of a list. */
const listPageSize = 500;

/** Looks after other holders' leases, for people and tools: reads them, asks their holders to stop, breaks them. */
export class Oversight {
  readonly #context: ProtocolContext;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  async inspect(key: string, options: PlaceOptions): Promise<LeaseRecord | undefined> {
    const { place } = placeOf(key, options, []);
    const request = { key: leaseItemKey(key, place), consistent: true };
    return readRecord(await callStore(this.#context, (store, call) => store.get(request, call)));
  }

  async inspectAll(key: string): Promise<LeaseRecord[]> {
    return await lookAtAll(this.#context, leasesOf(checkKey(key)), { consistent: true });
  }

  async *list(options: ListOptions): AsyncGenerator<LeaseRecord, void, undefined> {
    checkKnown(options, ["prefix", "all"], "options");
    const { prefix = "", all = false } = options;
    if (prefix !== "") checkText("prefix", prefix, limits.keyBytes);
    check(typeof all === "boolean", "all", all, "true or false");
    const filter = { ...leasesByPrefix(prefix, all), pageSize: listPageSize };
    let after: ItemKey | undefined;
    do {
      const request = after === undefined ? filter : { ...filter, after };
      const page = await callStore(this.#context, (store, call) => store.scan(request, call));
      for (const item of page.items) {
        const record = readRecord(item);
        if (record !== undefined) yield record;
      }
      after = page.next;
    } while (after !== undefined);
  }

  async forceRelease(key: string, options: PlaceOptions & { readonly token: string }): Promise<boolean> {
    const lease = placeOf(key, options, ["token"]);
    const token = checkText("token", options.token, limits.ownerBytes);
    const request = breakLease({ ...lease, token });
    const result = await callStore(this.#context, (store, call) => store.update(request, call));
    return result.applied || wasBroken(result.item, token);
  }

  async requestRevocation(
    key: string,
    options: PlaceOptions & { readonly token: string; readonly reason?: string },
  ): Promise<boolean> {
    const lease = placeOf(key, options, ["token", "reason"]);
    const token = checkText("token", options.token, limits.ownerBytes);
    const reason = checkText("reason", options.reason ?? "revocation requested", limits.revocationBytes);
    const request = requestRevocation({ ...lease, token, reason });
    return (await callStore(this.#context, (store, call) => store.update(request, call))).applied;
  }
}

function placeOf(key: string, options: PlaceOptions, others: readonly string[]): LeasePlace {
  checkKnown(options, [...others, "place"], "options");
  const { place } = options;
  if (place !== undefined) checkText("place", place, limits.sortKeyBytes);
  return { key: checkKey(key), place };
}
