import type { LeaseClient } from "../client.ts";
import { internalsOf } from "../client-internals.ts";
import { untilAborted } from "../errors/aborted.ts";
import { LeaseUnavailableError } from "../errors/errors.ts";
import { type Lease, runUnder } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import { checkKey, checkWork } from "../options/check-values.ts";
import { OwnLeases } from "../own-leases.ts";
import type { LeaseRecord } from "../record.ts";
import { LeaseUpgradeError } from "./errors.ts";
import {
  checkLockOptions,
  type ReadOptions,
  type TryReadOptions,
  type TryWriteOptions,
  type WriteOptions,
} from "./options.ts";
import { Participants } from "./participants.ts";
import { ReaderPlaces } from "./reader-places.ts";
import { Reading } from "./reading.ts";
import type { Scene } from "./scene.ts";
import { Writing } from "./writing.ts";

/** What a look at a read-write lock shows: leases that have not been released, also those that have expired. */
export interface ReadWriteState {
  /** Whoever writes, or has shut new readers out and still waits for the earlier ones. */
  readonly writer: LeaseRecord | undefined;
  /** In the order of their places; for a moment also one that is about to find a writer and withdraw. */
  readonly readers: readonly LeaseRecord[];
}

/**
 * Lets many readers in at once, or one writer alone.
 *
 * Promised, while clocks differ by no more than `clockSkewMs`: whoever holds an unexpired write lock is alone; a
 * writer waits for nobody but the readers and the writer that were there before it, so that readers cannot starve it;
 * the fencing token of each writer is larger than every earlier writer's. Not promised: that work stops when its
 * lease is lost; an order among those who wait; that readers get in where one writer follows another without a pause.
 *
 * Fence the writers' writes, with `lease.fence()`. A reader's fencing token only counts who used its place and
 * compares with no other: let readers read, and have whatever they write checked with `lease.conditionCheck()`.
 *
 * A reader cannot become a writer: its write lock would wait for its own read lock until `waitMs` is over. Release
 * the read lock first. Under a `reentrant` owner this is noticed, and refused with {@link LeaseUpgradeError}.
 *
 * Make one object for each key and keep it: it remembers which places its readers can use.
 *
 * Every method rejects with InvalidOptionsError before it sends anything, with LeaseTableError,
 * LeaseConfigurationError and LeaseServiceError.
 *
 * ```ts
 * const catalogue = new ReadWriteLock(client, "catalogue");
 * const page = await catalogue.withRead({ waitMs: 5_000 }, () => render());
 * await catalogue.withWrite({ waitMs: 30_000, heartbeat: true }, (lease) => rebuild({ signal: lease.signal }));
 * ```
 */
export class ReadWriteLock {
  /** The key that its leases are under. */
  readonly key: string;
  readonly #scene: Scene;
  readonly #ownReads: OwnLeases;
  readonly #ownWrites: OwnLeases;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, key: string) {
    const made = internalsOf(client);
    this.key = checkKey(key);
    this.#ownReads = new OwnLeases(key, made.context.clock);
    this.#ownWrites = new OwnLeases(key, made.context.clock);
    this.#scene = {
      key,
      client: made,
      participants: new Participants(made.context, key),
      places: new ReaderPlaces(),
    };
  }

  /**
   * Acquires the lock for reading, waiting up to `waitMs` for a writer to end.
   *
   * 2 requests where nobody writes: 1 write of its own lease, and then 1 consistent read of the writer's. 1 more for
   * each place that another reader has; 2 more to take a dead writer's lease away. Where somebody writes, 1 more to
   * withdraw; while it waits it holds nothing, and each look is 1 read.
   *
   * `reentrant` lets the same owner in once more, without a request where this object has its read lock, and lets it
   * read beside its own write lock. Rejects with {@link LeaseUnavailableError}, which tells of the writer, and with
   * LeaseAbortedError when the signal aborts; in every case of failure nothing stays held.
   */
  async read(options: ReadOptions = {}): Promise<Lease> {
    return await this.#read(options, true);
  }

  /** Like {@link ReadWriteLock.read}, but never waits, and gives undefined when somebody writes or waits to write. */
  async tryRead(options: TryReadOptions = {}): Promise<Lease | undefined> {
    return await orUndefined(this.#read(options, false));
  }

  /**
   * Acquires the lock for writing, waiting up to `waitMs` for everybody to end.
   *
   * 2 requests where nobody else is: 1 write of the writer's lease, which shuts new readers out from that moment, and
   * then 1 consistent read of all readers. 2 more for each reader that is dead. While it waits for readers its lease
   * is prolonged, and each look is 1 read, with a last one that is consistent and 1 renewal, which shows that the gate
   * was shut all the time.
   *
   * The lease is given out only when it protects its holder from all readers; the `acquired` event tells of the
   * moment at which the gate was shut. `reentrant` lets the same owner in once more: without a request beyond the
   * first where this object has its write lock; a write lock of the same owner from elsewhere is taken over at once.
   * Rejects with {@link LeaseUnavailableError}, which tells of the writer in the way or of the reader that may stay
   * longest, with {@link LeaseUpgradeError}, and with LeaseAbortedError when the signal aborts; in every case of
   * failure nothing stays held, and readers can pass again.
   */
  async write(options: WriteOptions = {}): Promise<Lease> {
    return await this.#write(options, true);
  }

  /**
   * Like {@link ReadWriteLock.write}, but never waits, and gives undefined when anybody reads or writes. It shuts
   * the gate for as long as it takes to find that out: readers who try at that very moment may be refused, too.
   */
  async tryWrite(options: TryWriteOptions = {}): Promise<Lease | undefined> {
    return await orUndefined(this.#write(options, false));
  }

  /**
   * Acquires the lock for reading, runs the work, and releases the lock whatever becomes of the work.
   *
   * Resolves to the work's result if the lease protected it to its end, or was revoked; rejects with LeaseLostError
   * if it did not, for then a writer may have been at work: also where nothing but the release finds that it was broken
   * meanwhile. The work's own error comes first. A release that fails does not hide the result: a writer passes over
   * the lease when it ends.
   */
  async withRead<T>(options: ReadOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.read(options), work);
  }

  /**
   * Acquires the lock for writing, runs the work, and releases the lock whatever becomes of the work.
   *
   * As {@link ReadWriteLock.withRead} in all else: LeaseLostError says that others may have read or written meanwhile.
   */
  async withWrite<T>(options: WriteOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork(work);
    return await runUnder(await this.write(options), work);
  }

  /** Reads who holds the lock, and how. 1 consistent read of all of them, which is no snapshot: for people and tools. */
  async inspect(): Promise<ReadWriteState> {
    return await this.#scene.participants.read({ consistent: true });
  }

  async #read(options: ReadOptions, mayWait: boolean): Promise<Lease> {
    const terms = checkLockOptions(options, mayWait, this.#scene.client);
    return await this.#run(terms, (own) => this.#admitReader(own));
  }

  async #admitReader(terms: AcquisitionTerms): Promise<Lease> {
    const reading = new Reading(this.#scene, terms);
    if (!terms.reentrant) return await reading.admission();
    return await this.#ownReads.enter(
      terms,
      () => reading.admission(),
      (known) => reading.admission(known),
    );
  }

  async #write(options: WriteOptions, mayWait: boolean): Promise<Lease> {
    const terms = checkLockOptions(options, mayWait, this.#scene.client);
    return await this.#run(terms, (own) => this.#admitWriter(own));
  }

  async #admitWriter(terms: AcquisitionTerms): Promise<Lease> {
    const writing = new Writing(this.#scene, terms);
    const first = async (): Promise<Lease> => {
      if (this.#scene.places.isReading(terms.owner)) throw new LeaseUpgradeError(this.key, terms.owner);
      return await writing.admission();
    };
    if (!terms.reentrant) return await writing.admission();
    return await this.#ownWrites.enter(terms, first, (known) => writing.admission(known));
  }

  /** Until the caller's signal aborts, or the client is closed. */
  async #run(terms: AcquisitionTerms, admit: (terms: AcquisitionTerms) => Promise<Lease>): Promise<Lease> {
    const { lifecycle } = this.#scene.client.context;
    return await untilAborted(this.key, terms.signal, () =>
      lifecycle.run(terms.signal, (signal) => admit({ ...terms, signal })),
    );
  }
}

async function orUndefined(attempt: Promise<Lease>): Promise<Lease | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof LeaseUnavailableError) return undefined;
    throw error;
  }
}
