/**
 * The expressions that a read-write lock adds. Its leases are acquired, renewed and released by the expressions of
 * every lease, at other sort keys.
 *
 *     remove   the record is still the one that was judged dead: same token, same version
 *     ask      never applied: its refusal brings the item as it is now
 */
import { release } from "./expressions.ts";
import type { LeaseRecord } from "./record.ts";
import { attributeNames } from "./schema.ts";
import { readWriteSortKeyPrefix } from "./schema-read-write.ts";
import { amended, render } from "./store/write.ts";
import type { QueryRequest, UpdateRequest } from "./store.ts";

const { partitionKey, sortKey, version } = attributeNames;

/** Finds everybody at a read-write lock: the writer, the readers, and the tombstones of former ones. */
export function participantsOf(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  return {
    keyCondition: `#${partitionKey} = :key AND begins_with(#${sortKey}, :places)`,
    names: { [`#${partitionKey}`]: partitionKey, [`#${sortKey}`]: sortKey },
    values: { ":key": key, ":places": readWriteSortKeyPrefix },
  };
}

/**
 * Takes a dead holder's lease away without taking its place: any write to the record since it was judged defeats
 * this, and no renewal of the dead one can succeed after it.
 */
export function removeDead(judged: LeaseRecord, now: number, retentionMs: number): UpdateRequest {
  const { key, sortKey } = judged;
  const letGo = release(
    { key, sortKey },
    { shown: judged, now, retentionMs, slot: undefined, cooldown: undefined },
  );
  return render(amended(letGo, { insist: [[version, "=", judged.version]] }));
}

/** No write has this version. */
const noVersion = -1;

/** Reads an item by a write that is always refused, with the permissions of a write alone. */
export function askAbout(record: LeaseRecord, now: number, retentionMs: number): UpdateRequest {
  return removeDead({ ...record, version: noVersion }, now, retentionMs);
}
