import { limits, utf8Bytes } from "../schema.ts";

/** How a computation failed, as far as others are told. */
export interface CachedFailure {
  /** The error's name. */
  readonly name: string;
  /** The error's message; at most 1024 bytes. */
  readonly message: string;
}

/**
 * What a cache keeps for a key: a result or a failure with its times, or neither where it was invalidated. Plain JSON if
 * the result is.
 */
export interface CacheEntry {
  /** The result. Absent where no result can be used: a computation has failed, or the key was invalidated. */
  readonly value?: unknown;
  /** How the last computation failed, until `freshUntil`; absent where it succeeded. */
  readonly failure?: CachedFailure;
  /** Epoch milliseconds of the clock of whoever computed it. */
  readonly freshUntil: number;
  /** Until when the value may stand in for a newer one. Not before `freshUntil`, unless a failure has kept the value. */
  readonly staleUntil: number;
  /**
   * Of the lease under which it was computed; grows with every computation. That of an invalidation is half above the
   * last one that was known, and so below the next.
   */
  readonly fencingToken: number;
}

/** Reads what a cache gave. Anything that is not an entry is a miss: null, another program's data, an older form. */
export function readEntry(found: unknown): CacheEntry | undefined {
  if (typeof found !== "object" || found === null) return undefined;
  const { freshUntil, staleUntil, fencingToken, failure } = found as Partial<
    Record<keyof CacheEntry, unknown>
  >;
  const hasTimes = [freshUntil, staleUntil, fencingToken].every((number) => Number.isFinite(number));
  if (!hasTimes || !("value" in found || isFailure(failure))) return undefined;
  return found as CacheEntry;
}

function isFailure(failure: unknown): boolean {
  if (typeof failure !== "object" || failure === null) return false;
  const { name, message } = failure as Partial<CachedFailure>;
  return typeof name === "string" && typeof message === "string";
}

/** The fencing token of what a cache gave, be it an entry or the mark of an invalidation; undefined for anything else. */
export function fencingTokenIn(found: unknown): number | undefined {
  if (typeof found !== "object" || found === null) return undefined;
  const { fencingToken } = found as Partial<Record<keyof CacheEntry, unknown>>;
  return typeof fencingToken === "number" ? fencingToken : undefined;
}

/** What an entry is good for at a given time. */
export type Standing =
  | { readonly state: "fresh"; readonly value: unknown }
  | { readonly state: "failed"; readonly failure: CachedFailure; readonly until: number }
  | Stale
  | { readonly state: "absent" };

/** A value that may stand in for a newer one. */
export interface Stale {
  readonly state: "stale";
  readonly value: unknown;
  readonly until: number;
  /** Of the entry that it was found in. */
  readonly fencingToken: number;
}

/** Says what an entry is good for. */
export function standingOf(entry: CacheEntry | undefined, now: number): Standing {
  if (entry === undefined) return { state: "absent" };
  const { value, failure, freshUntil } = entry;
  if (now < freshUntil) {
    return failure === undefined
      ? { state: "fresh", value }
      : { state: "failed", failure, until: freshUntil };
  }
  return staleIn(entry, now) ?? { state: "absent" };
}

/** Gives the value of an entry that is past its time, or that a failure has kept, while it may stand in for a newer one. */
export function staleIn(entry: CacheEntry | undefined, now: number): Stale | undefined {
  if (entry === undefined || !("value" in entry)) return undefined;
  const { value, failure, freshUntil, staleUntil, fencingToken } = entry;
  const isPast = failure !== undefined || now >= freshUntil;
  return isPast && now < staleUntil ? { state: "stale", value, until: staleUntil, fencingToken } : undefined;
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
 * What takes an entry's place when it is invalidated: whoever reads it misses, no result up to the last fencing token
 * replaces it, and any later one does.
 */
export function invalidationMark(lastFencingToken: number): CacheEntry {
  // The last one may be that of a mark, which has to stay where it is, however often it is repeated.
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
  return { failure: failureOf(error), freshUntil, staleUntil: freshUntil, fencingToken };
}

/** A failure's entry that keeps an earlier value, for as long as that may stand in. */
export function withEarlier(failure: CacheEntry, { value, until }: Stale): CacheEntry {
  return { ...failure, value, staleUntil: until };
}

/** Whether an entry's value is older than its fencing token. */
export function hasEarlierValue(entry: CacheEntry): boolean {
  return entry.failure !== undefined && "value" in entry;
}

function failureOf(error: unknown): CachedFailure {
  const name = error instanceof Error ? error.name : typeof error;
  const message = error instanceof Error ? error.message : String(error);
  return { name: shortened(name), message: shortened(message) };
}

/** A reason is a sentence; whoever puts a document into a message has it cut. */
function shortened(text: string): string {
  let short = text.toWellFormed();
  while (utf8Bytes(short) > limits.revocationBytes) short = short.slice(0, Math.floor(short.length / 2));
  return short.toWellFormed();
}
