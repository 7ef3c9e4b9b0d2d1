/**
 * A result that was computed in single flight, as its item holds it, and the statements that write and read it:
 *
 *     storeResult       no later holder of the lock has stored one
 *     replaceResult     the one that was seen is still there
 *     resultAndHolder   a result, and the lease under which the next one is computed
 */
import { saying } from "../../base/errors.ts";
import { leaseItemKey, limits, timeToLive, utf8Bytes } from "../../base/schema.ts";
import type { QueryRequest } from "../../base/store.ts";
import { notGrantedSince } from "../../statements/lock.ts";
import { type Part, say, type Values, Write } from "../../statements/statement.ts";

/** The sort key of a result that was computed in single flight. */
export const cacheSortKey = "cache";

/**
 * The sort key of the lease under which a result is computed.
 *
 * It is not the key's own lease: the holder of that one may ask for a result of the same name. It begins with the
 * result's own sort key, so that one query reads both.
 */
export const flightSortKey = "cache#flight";

/** How a computation failed, as other callers are told. */
export interface CachedFailure {
  /** The error's name. */
  readonly name: string;
  /** The error's message; at most 1024 bytes. */
  readonly message: string;
}

/**
 * A cache's entry for a key: a result or a failure with its times, or neither after an invalidation. Plain JSON if
 * the result is.
 */
export interface CacheEntry {
  /** The result. Absent when no result can be used: a computation has failed, or the key was invalidated. */
  readonly value?: unknown;
  /** How the last computation failed, until `freshUntil`; absent when it succeeded. */
  readonly failure?: CachedFailure;
  /** Epoch milliseconds of the computing process's clock. */
  readonly freshUntil: number;
  /** Until when the value may stand in for a newer one. Not before `freshUntil`, unless a failure has kept the value. */
  readonly staleUntil: number;
  /**
   * The fencing token of the lease of its computation; grows with every computation. That of an invalidation is half
   * above the last known one, and so below the next.
   */
  readonly fencingToken: number;
}

/** Reads a cache's entry. Every other value is a miss: null, another program's data, an older form. */
export function readEntry(found: unknown): CacheEntry | undefined {
  if (typeof found !== "object" || found === null) return undefined;
  const { freshUntil, staleUntil, fencingToken, failure } = found as Partial<
    Record<keyof CacheEntry, unknown>
  >;
  const hasTimes = [freshUntil, staleUntil, fencingToken].every((number) => Number.isFinite(number));
  const hasOutcome = failure === undefined ? "value" in found : isFailure(failure);
  if (!hasTimes || !hasOutcome) return undefined;
  return found as CacheEntry;
}

function isFailure(failure: unknown): boolean {
  const { name, message } = Object(failure) as Partial<CachedFailure>;
  return typeof name === "string" && typeof message === "string";
}

/** The fencing token of an entry, or of the mark of an invalidation; undefined for any other value. */
export function fencingTokenIn(found: unknown): number | undefined {
  if (typeof found !== "object" || found === null) return undefined;
  const { fencingToken } = found as Partial<Record<keyof CacheEntry, unknown>>;
  return typeof fencingToken === "number" ? fencingToken : undefined;
}

/** A value that may stand in for a newer one. */
export interface Stale {
  readonly value: unknown;
  readonly until: number;
  /** Of the entry that contains it. */
  readonly fencingToken: number;
}

/** Whether an entry makes a new computation needless: its result is fresh, or its failure is still remembered. */
export function isFresh(entry: CacheEntry, now: number): boolean {
  return now < entry.freshUntil;
}

/** Gives the value of an entry that is past its time, or that a failure has kept, while it may stand in for a newer one. */
export function staleIn(entry: CacheEntry | undefined, now: number): Stale | undefined {
  if (entry === undefined || !("value" in entry)) return undefined;
  const { value, failure, staleUntil, fencingToken } = entry;
  const isPast = failure !== undefined || !isFresh(entry, now);
  return isPast && now < staleUntil ? { value, until: staleUntil, fencingToken } : undefined;
}

/** For how long results are kept. */
export interface Lifetimes {
  readonly freshForMs: number;
  readonly staleForMs: number;
  readonly failureForMs: number;
}

/** The entry of a result. */
export function resultEntry(
  value: unknown,
  now: number,
  { freshForMs, staleForMs }: Lifetimes,
  fencingToken: number,
): CacheEntry {
  const freshUntil = now + freshForMs;
  return { value, freshUntil, staleUntil: freshUntil + staleForMs, fencingToken };
}

/**
 * The mark that replaces an entry when it is invalidated. For readers it is a miss. No result up to the last fencing
 * token replaces it, and any later one does.
 */
export function invalidationMark(lastFencingToken: number): CacheEntry {
  // The last token may be that of a mark. A repeated invalidation must not move it.
  return { freshUntil: 0, staleUntil: 0, fencingToken: Math.floor(lastFencingToken) + 0.5 };
}

/** The entry of a failure. */
export function failureEntry(
  error: unknown,
  now: number,
  { failureForMs }: Lifetimes,
  fencingToken: number,
): CacheEntry {
  const freshUntil = now + failureForMs;
  return { failure: cachedFailureOf(error), freshUntil, staleUntil: freshUntil, fencingToken };
}

/** A failure's entry that keeps an earlier value, for as long as that value may stand in. */
export function withEarlier(failure: CacheEntry, { value, until }: Stale): CacheEntry {
  return { ...failure, value, staleUntil: until };
}

/** Whether an entry's value is older than its fencing token. */
export function hasEarlierValue(entry: CacheEntry): boolean {
  return entry.failure !== undefined && "value" in entry;
}

function cachedFailureOf(error: unknown): CachedFailure {
  // Programs set both to values that are no text.
  const name = saying(error instanceof Error ? error.name : typeof error);
  return { name: shortened(name), message: shortened(saying(error)) };
}

/** A reason is a sentence; a longer message is cut. */
function shortened(text: string): string {
  let short = text.toWellFormed();
  while (utf8Bytes(short) > limits.revocationBytes) short = short.slice(0, Math.floor(short.length / 2));
  return short.toWellFormed();
}

const stored: Part = { set: "#data = :data, #fence = :fence, #ttl = :ttl" };
const notStoredLater: Part = { when: "(attribute_not_exists(#fence) OR #fence <= :fence)" };
const stores = say(stored, notStoredLater);
const replaces = say(stored);

/** The content of a result's item. */
export interface StoredResult {
  readonly key: string;
  /** JSON text. */
  readonly text: string;
  /** Of the lease of its computation. */
  readonly fencingToken: number;
  /** The end of its use by any caller, in epoch milliseconds. */
  readonly endsAt: number;
}

/** Stores a result unless a later holder has stored one. The same holder may store again, so that a repeat is harmless. */
export function storeResult(result: StoredResult): Write {
  return new Write(leaseItemKey(result.key, cacheSortKey), stores, resultValues(result));
}

/**
 * Stores a result in the place of the entry that was seen, and of no other: not of the mark of an invalidation
 * either.
 *
 * A copy that arrives late changes nothing. A repeat is refused, and finds its own fencing token.
 */
export function replaceResult(result: StoredResult, seenFencingToken: number): Write {
  const write = new Write(leaseItemKey(result.key, cacheSortKey), replaces, resultValues(result));
  return notGrantedSince(write, seenFencingToken);
}

function resultValues({ text, fencingToken, endsAt }: StoredResult): Values {
  return { ":data": text, ":fence": fencingToken, ":ttl": timeToLive(endsAt, 0) };
}

/** Finds a result and the lease of the caller that computes the next one. */
export function resultAndHolder(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  return {
    keyCondition: "#pk = :key AND begins_with(#sk, :cache)",
    names: { "#pk": "pk", "#sk": "sk" },
    values: { ":key": key, ":cache": cacheSortKey },
  };
}
