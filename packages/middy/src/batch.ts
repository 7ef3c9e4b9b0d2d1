import { environmentNames } from "@leasehold/client/environment";
import {
  aFunction,
  check,
  checkKey,
  checkOptions,
  checkWork,
  countTo,
  oneOf,
  runTraced,
  trueOrFalse,
} from "@leasehold/client/internal";
import type { Context } from "aws-lambda";
import { type BatchItemFailure, type BatchRecord, readBatch } from "./batch-records.ts";
import { Guard, type Skipped } from "./guard.ts";
import { type Hold, throwUnlessProtected } from "./hold.ts";
import { readTime } from "./invocation.ts";
import type { LeasedHandler } from "./leased.ts";
import type { LeaseLockOptions, WhenHeld } from "./options.ts";
import { leaseLockRules, type MakeClient } from "./settings.ts";
import { InvocationEndingError, type Lock } from "./signal.ts";

/** Options of `leasedBatch`: those of `leased` that are about one lock, read for each record. */
export interface LeasedBatchOptions<TRecord = unknown>
  extends Pick<
    LeaseLockOptions,
    | "client"
    | "store"
    | "tableName"
    | "order"
    | "lockAtMostForMs"
    | "lockAtLeastForMs"
    | "heartbeat"
    | "reserveMs"
    | "timeoutMarginMs"
    | "onEvent"
    | "keyDimension"
    | "metrics"
    | "clock"
  > {
  /**
   * The key of a record's lock, or a function that gives it. Records of one key run one after the other, under one
   * lease. A record of which it throws is reported as failed.
   * @default - LEASEHOLD_KEY; with `once`, none
   */
  readonly key?: string | ((record: TRecord, context: Context) => string);
  /**
   * What becomes of the records of a key that another caller holds: they fail, and come again (`throw`); they wait, and
   * leave `reserveMs` for the work (`wait`); they count as done (`skip`).
   * @default - LEASEHOLD_WHEN_HELD, else "throw"
   */
  readonly whenHeld?: Exclude<WhenHeld, "replace">;
  /**
   * Runs each record once, however often it is delivered: its success is kept under a lock of its own, at the key (with
   * a `key`, that key and a slash) and the record's id, until the table's ttl removes it. 2 requests more a record.
   * @default false
   */
  readonly once?: boolean;
  /** How many keys are worked on at the same time, 1 to 1000. @default 10 */
  readonly concurrency?: number;
  /**
   * Learns why a record failed. Records behind a failed one of their line fail too, with the error of that one.
   * @default - writes the record's id and the error to the standard error
   */
  readonly onFailure?: (record: TRecord, error: unknown) => void;
}

/** The answer to the source: the records that have to come again. */
export interface LeasedBatchResponse<TRecord = unknown> {
  readonly batchItemFailures: BatchItemFailure<TRecord>[];
}

/** A record with the key that the options give it, or why they give none. */
interface KeyedRecord<TRecord> extends BatchRecord<TRecord> {
  readonly key: string | undefined;
  readonly refusal?: unknown;
}

type RecordWork<TRecord> = (record: TRecord, context: Context, lock: Lock) => unknown;

const rules = {
  ...omitting(leaseLockRules, "skipResult", "resume", "data", "job", "timeoutEarlyInMillis"),
  whenHeld: oneOf("skip", "throw", "wait"),
  once: trueOrFalse,
  concurrency: countTo(1_000),
  onFailure: aFunction,
};

function omitting<Value extends object, Name extends keyof Value>(
  value: Value,
  ...names: readonly Name[]
): Omit<Value, Name> {
  const kept = Object.entries(value).filter(([name]) => !names.includes(name as Name));
  return Object.fromEntries(kept) as Omit<Value, Name>;
}

/** What all batches of one handler share. */
interface Parts<TRecord> {
  readonly work: RecordWork<TRecord>;
  /** Holds the keys of the records; undefined without keys. */
  readonly byKey: Guard<KeyedRecord<TRecord>> | undefined;
  /** Holds the records themselves, and keeps which are done; undefined without `once`. */
  readonly byRecord: Guard<KeyedRecord<TRecord>> | undefined;
  readonly timeoutMarginMs: number;
}

/** Wraps the work on one record as a handler of batches. Throws InvalidOptionsError. */
export function batchHandler<TRecord>(
  options: LeasedBatchOptions<TRecord>,
  work: RecordWork<TRecord>,
  makeClient: MakeClient,
): LeasedHandler<unknown, LeasedBatchResponse<TRecord>> {
  checkWork(work);
  const checked = checkOptions(options, rules as never) as LeasedBatchOptions<TRecord>;
  const { once = false, concurrency = 10, onFailure = writeFailure, key: given, ...lock } = checked;
  const key = given ?? (once ? undefined : process.env[environmentNames.key] || undefined);
  check(
    once || key !== undefined,
    "key",
    key,
    `a key, by the option or by ${environmentNames.key}, or once: true`,
  );
  const byKey =
    key === undefined
      ? undefined
      : new Guard<KeyedRecord<TRecord>>(
          { ...lock, key: (entry) => entry.key ?? "", once: false },
          makeClient,
        );
  // A record's own lock is not waited for: so it takes no order.
  const ofRecord = omitting(lock, "order");
  const beside = byKey && {
    ...omitting(ofRecord, "onEvent", "keyDimension", "store"),
    client: byKey.settings.client,
    metrics: false as const,
  };
  const byRecord = once
    ? new Guard<KeyedRecord<TRecord>>(
        {
          ...(beside ?? ofRecord),
          key: ownKeyOf,
          once: ({ id }) => id,
          whenHeld: "throw",
          lockAtLeastForMs: 0,
        },
        makeClient,
      )
    : undefined;
  // There is one: without a key, `once` is needed.
  const { settings } = (byKey ?? byRecord) as Guard<KeyedRecord<TRecord>>;
  const { metrics, timeoutMarginMs } = settings;
  const parts = { work, byKey, byRecord, timeoutMarginMs };

  return async (event, context, ...[more]) => {
    const entries = readBatch<TRecord>(event).map((read) => ({
      ...read,
      ...keyFor(read.record, key, context),
    }));
    const outer = typeof more === "function" ? undefined : more?.signal;
    const batch = new Batch(parts, context, outer);
    metrics?.begin(context);
    const units = unitsOf(entries).values();
    const workers = Array.from({ length: concurrency }, async () => {
      for (const unit of units) for (const run of runsOf(unit)) await batch.run(run);
    });
    await Promise.all(workers);
    metrics?.end(context, undefined);
    return { batchItemFailures: failuresIn(entries, batch.failed, onFailure) };
  };
}

/** One delivery of a batch. */
class Batch<TRecord> {
  /** The records that failed, and why. */
  readonly failed = new Map<KeyedRecord<TRecord>, unknown>();
  readonly #parts: Parts<TRecord>;
  readonly #context: Context;
  readonly #outer: AbortSignal | undefined;
  readonly #remainingMs: () => number | undefined;
  /** With so much time left, no record begins. */
  readonly #marginMs: number;
  /** By line, why its first record failed. */
  readonly #stopped = new Map<string, unknown>();

  /** Throws InvalidOptionsError if the context is none that is supported. */
  constructor(parts: Parts<TRecord>, context: Context, outer: AbortSignal | undefined) {
    const { remainingMs, marginMs } = readTime(context, parts);
    this.#remainingMs = remainingMs;
    this.#marginMs = marginMs(remainingMs() ?? 0);
    this.#parts = parts;
    this.#context = context;
    this.#outer = outer;
  }

  /** Runs records of one key, one after the other, under one lease. Never rejects. */
  async run(entries: readonly KeyedRecord<TRecord>[]): Promise<void> {
    const done: KeyedRecord<TRecord>[] = [];
    let entering: Promise<Hold | Skipped> | undefined;
    for (const entry of entries) {
      try {
        this.#throwIfOver(entry);
        // One try for all of them: behind a refusal the others fail with the same error.
        entering ??= this.#parts.byKey?.enter(entry, this.#context, this.#outer);
        const entered = await entering;
        if (entered !== undefined && "skipped" in entered) continue;
        const runOne = (): Promise<void> => this.#runOne(entry, entered?.lock);
        await (entered === undefined ? runOne() : runTraced(entered.lock.lease, runOne));
        done.push(entry);
      } catch (error) {
        this.#fail(entry, error);
      }
    }
    try {
      const entered = await entering;
      if (entered === undefined || "skipped" in entered) return;
      await entered.leave(done.length > 0 ? "succeeded" : "failed");
    } catch (error) {
      // Without the lease, or with a lease that was taken unseen, any of them may have overlapped another's work.
      for (const entry of done) this.#fail(entry, error);
    }
  }

  async #runOne(entry: KeyedRecord<TRecord>, lock: Lock | undefined): Promise<void> {
    const { byRecord, work } = this.#parts;
    lock?.signal.throwIfAborted();
    const own = await byRecord?.enter(entry, this.#context, lock?.signal ?? this.#outer);
    if (own !== undefined && "skipped" in own) return;
    const held = own === undefined ? lock : lock === undefined ? own.lock : both(lock, own.lock);
    try {
      const run = (): unknown => work(entry.record, this.#context, held as Lock);
      await (own === undefined ? run() : runTraced(own.lock.lease, run));
      throwUnlessProtected(lock?.lease.loss);
    } catch (error) {
      await own?.leave("failed");
      throw error;
    }
    await own?.leave("succeeded");
  }

  #throwIfOver({ line, refusal }: KeyedRecord<TRecord>): void {
    if (line !== undefined && this.#stopped.has(line)) throw this.#stopped.get(line);
    if (refusal !== undefined) throw refusal;
    const leftMs = this.#remainingMs();
    if (leftMs !== undefined && leftMs <= this.#marginMs) throw new InvocationEndingError("timeout");
  }

  #fail(entry: KeyedRecord<TRecord>, error: unknown): void {
    const { line } = entry;
    this.failed.set(entry, error);
    if (line !== undefined && !this.#stopped.has(line)) this.#stopped.set(line, error);
  }
}

/** The lease of the key, and a signal that aborts when either lock is lost. */
function both(lock: Lock, own: Lock): Lock {
  return {
    lease: lock.lease,
    get signal(): AbortSignal {
      // Reading this one looks at the clock, and the other follows it.
      void lock.signal;
      return own.signal;
    },
  };
}

function keyFor<TRecord>(
  record: TRecord,
  key: LeasedBatchOptions<TRecord>["key"],
  context: Context,
): Pick<KeyedRecord<TRecord>, "key" | "refusal"> {
  if (typeof key !== "function") return { key };
  try {
    return { key: checkKey(key(record, context)) };
  } catch (refusal) {
    return { key: undefined, refusal };
  }
}

function ownKeyOf({ key, id }: KeyedRecord<unknown>): string {
  return key === undefined ? id : `${key}/${id}`;
}

/** Sorts records into lists that may run beside each other: records of one key, or of one line, are in one list. */
function unitsOf<TRecord>(entries: readonly KeyedRecord<TRecord>[]): KeyedRecord<TRecord>[][] {
  const parents = new Map<string, string>();
  const rootOf = (name: string): string => {
    const parent = parents.get(name);
    if (parent === undefined) return name;
    const root = rootOf(parent);
    parents.set(name, root);
    return root;
  };
  const namesOf = ({ key, line }: KeyedRecord<TRecord>, index: number): [string, string] => {
    const names = [
      ...(key === undefined ? [] : [`key ${key}`]),
      ...(line === undefined ? [] : [`line ${line}`]),
    ];
    const [one = `record ${index}`, other = one] = names;
    return [one, other];
  };
  for (const [index, entry] of entries.entries()) {
    const [one, other] = namesOf(entry, index).map(rootOf) as [string, string];
    if (one !== other) parents.set(one, other);
  }
  const units = new Map<string, KeyedRecord<TRecord>[]>();
  for (const [index, entry] of entries.entries()) {
    const root = rootOf(namesOf(entry, index)[0]);
    const unit = units.get(root);
    if (unit === undefined) units.set(root, [entry]);
    else unit.push(entry);
  }
  return [...units.values()];
}

/** Splits a list where the key changes: a lease is never kept while another key is waited for. */
function runsOf<TRecord>(unit: readonly KeyedRecord<TRecord>[]): KeyedRecord<TRecord>[][] {
  const runs: KeyedRecord<TRecord>[][] = [];
  for (const entry of unit) {
    const last = runs.at(-1);
    if (last?.[0]?.key === entry.key && last !== undefined) last.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

/** Tells of each failure, and gives the answer's part: of a stream, the first failure of a line stands for the rest. */
function failuresIn<TRecord>(
  entries: readonly KeyedRecord<TRecord>[],
  failed: ReadonlyMap<KeyedRecord<TRecord>, unknown>,
  onFailure: (record: TRecord, error: unknown, id: string) => void,
): BatchItemFailure<TRecord>[] {
  const reported: BatchItemFailure<TRecord>[] = [];
  const lines = new Set<string>();
  for (const entry of entries) {
    if (!failed.has(entry)) continue;
    const error = failed.get(entry);
    // Its own error, also a later one, must not fail the records that are done: they would come again.
    new Promise((told) => told(onFailure(entry.record, error, entry.id))).catch((mistake: unknown) => {
      console.error("onFailure failed:", mistake);
      writeFailure(entry.record, error, entry.id);
    });
    const { line, isCheckpoint, failure } = entry;
    if (!isCheckpoint || line === undefined || !lines.has(line)) reported.push(failure);
    if (line !== undefined) lines.add(line);
  }
  return reported;
}

function writeFailure(_: unknown, error: unknown, id: string): void {
  console.error(`record ${id} failed and comes again:`, error);
}
