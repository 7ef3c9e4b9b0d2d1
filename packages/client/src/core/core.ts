/** What all calls of one client share. */
import { hasSubscribers } from "node:diagnostics_channel";
import { isBranded } from "../base/brand.ts";
import type { ClientTimes } from "../base/check-options.ts";
import { readable } from "../base/check-values.ts";
import type { Clock, Moment, Randomness } from "../base/clock.ts";
import { InvalidOptionsError, type LeaseItemError } from "../base/errors.ts";
import { type LeaseEvent, type LeaseEventListener, publish, type ShortLeaseEvent } from "../base/events.ts";
import type { Renewals } from "../base/options.ts";
import { ServiceClock } from "../base/service-clock.ts";
import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionResult,
  UpdateResult,
} from "../base/store.ts";
import { type CallBudget, TimedCall } from "../base/timed-call.ts";
import type { Write } from "../statements/statement.ts";
import { ExpiryDetector } from "./expiry-detector.ts";
import type { ValueFormat } from "./fencing.ts";
import { type Keeper, keepEach } from "./heartbeat.ts";
import { Lifecycle } from "./lifecycle.ts";
import { RequestGate } from "./request-gate.ts";
import { Sharing } from "./sharing.ts";

/** The parts of a client that its options give. */
export interface CoreOptions {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly times: ClientTimes;
  readonly owner: { readonly current: string };
  readonly format: ValueFormat;
  readonly renewals: Renewals | undefined;
  readonly onEvent: LeaseEventListener | readonly LeaseEventListener[] | undefined;
}

/** How a client's renewals are sent, in full. */
interface RenewalOrder extends Renewals {
  begin(core: Core): Keeper;
}

/** A `skew` event is published at most once in this time. */
const quietMs = 60_000;
const agreeing = { minMs: 0, maxMs: 0 };
/** The possible duration of one slow answer over a network. */
const shortestSensibleMs = 1_000;

/** One client's table, clock, gate, open work and listeners. Every primitive is made of it. */
export class Core implements Table {
  readonly store: LeaseStore;
  readonly clock: ServiceClock;
  /** Decides which leases have expired. */
  readonly detector: ExpiryDetector;
  /** Sends renewals and attempts to acquire. */
  readonly gate: RequestGate;
  /** What is under way, until the client is closed. */
  readonly lifecycle: Lifecycle;
  /** Renews the leases that have a heartbeat. */
  readonly keeper: Keeper;
  /** The leases that their reentrant owners may share. */
  readonly sharing: Sharing;
  readonly randomness: Randomness;
  readonly times: ClientTimes;
  /** The form of values in `fence` and `conditionCheck`. */
  readonly format: ValueFormat;
  readonly #owner: { readonly current: string };
  readonly #listeners: LeaseEventListener | readonly LeaseEventListener[] | undefined;
  #isShortLeaseTold: boolean;
  #isTimeUnknownTold = false;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor({ store, clock, randomness, times, owner, format, renewals, onEvent }: CoreOptions) {
    this.store = store;
    this.clock = new ServiceClock(clock, store.isLocal ?? false, (now) => this.#watchTime(now));
    this.detector = new ExpiryDetector(this.clock, times.clockSkewMs);
    this.gate = new RequestGate(this.clock);
    this.lifecycle = new Lifecycle(this.clock);
    this.sharing = new Sharing(this.clock);
    this.randomness = randomness;
    this.times = times;
    this.format = format;
    this.keeper = (renewals as RenewalOrder | undefined)?.begin(this) ?? keepEach(this);
    this.#owner = owner;
    this.#listeners = onEvent;
    // In a store in the same process, one slow answer is not worth an event.
    this.#isShortLeaseTold = store.isLocal ?? false;
  }

  get tableName(): string {
    return this.store.tableName;
  }

  /** The owner of calls that name none. Read it anew for each call: a clone of this process has another owner. */
  get owner(): string {
    return this.#owner.current;
  }

  /** Whether anybody listens to events of a type. */
  hears(type: LeaseEvent["type"]): boolean {
    return this.#listeners !== undefined || hasSubscribers(`leasehold:${type}`);
  }

  publish(event: LeaseEvent): void {
    publish(event, this.#listeners);
  }

  /** One conditional write. */
  update(write: Write, budget: CallBudget = {}): Promise<UpdateResult> {
    return request(this, budget, (store, call) => store.update(write.request(), call));
  }

  /** One read. */
  get(asked: GetRequest, budget: CallBudget = {}): Promise<Item | undefined> {
    return request(this, budget, (store, call) => store.get(asked, call));
  }

  /** Publishes `shortLease`, once, for a lease that is shorter than one slow answer can be. */
  noteLease({ key, sortKey, owner, leaseDurationMs }: Omit<ShortLeaseEvent, "type">): void {
    if (this.#isShortLeaseTold || leaseDurationMs >= shortestSensibleMs) return;
    this.#isShortLeaseTold = true;
    this.publish({ type: "shortLease", key, sortKey, owner, leaseDurationMs });
  }

  /**
   * Called after each answer. Publishes `skew`, at most once a minute, if this machine's wall clock and the service's are
   * too far apart, and `timeUnknown`, once, if no answer tells the service's time.
   */
  #watchTime(now: Moment): void {
    if (this.clock.isUntold && !this.#isTimeUnknownTold) {
      this.#isTimeUnknownTold = true;
      this.publish({ type: "timeUnknown" });
    }
    if (now.monotonic < this.#quietUntil) return;
    const { clockSkewMs } = this.times;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = this.clock.ahead(now) ?? agreeing;
    const isApart = offsetMinMs > clockSkewMs || offsetMaxMs < -clockSkewMs;
    if (!isApart) return;
    this.#quietUntil = now.monotonic + quietMs;
    this.publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs });
  }
}

/** Returns a function that publishes `unreadable` for an item that was left out. */
export function unreadableIn(core: Pick<Core, "publish">): (error: LeaseItemError) => void {
  return ({ key, sortKey, attribute, message }) =>
    core.publish({ type: "unreadable", key, sortKey, attribute, message });
}

/** Kept beside the client and not in it, so that users do not see it. */
const known = new WeakMap<object, Core>();

/** Shows a client's core to the rest of the package. */
export function showCore(client: object, core: Core): void {
  known.set(client, core);
}

/** The parts of two copies may be of two versions, and need not fit together. */
const ofAnotherCopy = {
  finding: "is a LeaseClient of another copy of @leasehold/client",
  advice: "install one version (npm ls @leasehold/client), and bundle either all that imports it or nothing",
};

/** Returns a client's core. Throws InvalidOptionsError for every value that is not a LeaseClient of this package. */
export function coreOf(client: unknown): Core {
  // What is no object is no key of the map.
  const core = known.get(client as object);
  if (core !== undefined) return core;
  // Not by the class's name, which bundlers shorten.
  const isOfAnotherCopy = readable("client", client, () => isBranded(client, "LeaseClient"));
  throw new InvalidOptionsError("client", client, "a LeaseClient", isOfAnotherCopy ? ofAnotherCopy : {});
}

/** The table, and the clock that learns from its answers. */
export interface Table {
  readonly store: LeaseStore;
  readonly clock: ServiceClock;
}

/**
 * Makes one call to the store in its time. A request that has become too old is not sent, and the service's clock learns
 * the time from each answer. Rejects with LeaseServiceError without an answer in time; its write may have landed.
 */
export async function request<T>(
  { store, clock }: Table,
  budget: CallBudget,
  send: (store: LeaseStore, call: CallOptions) => Promise<T>,
): Promise<T> {
  const call = new TimedCall(clock, budget);
  try {
    return await send(store, call);
  } finally {
    call.end();
  }
}

/** Several conditional writes of different items: all of them or none. At most 100. */
export function transact(
  table: Table,
  writes: readonly Write[],
  budget: CallBudget = {},
): Promise<TransactionResult> {
  const entries = writes.map((write) => write.entry());
  return request(table, budget, (store, call) => store.transact(entries, call));
}

/** One page of the items under a key. */
export function query(table: Table, asked: QueryRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.query(asked, call));
}

/** One page of all items that pass a filter. */
export function scan(table: Table, asked: ScanRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.scan(asked, call));
}
