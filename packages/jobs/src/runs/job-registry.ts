/**
 * The registry of jobs: an item for each job that has a schedule. So tools find a table's jobs, and their missed slots,
 * without reading the whole table. Only tools use it: no run depends on it.
 */
import type { Item, LeaseClient, QueryRequest } from "@leasehold/client";
import {
  attributeNames,
  type Core,
  coreOf,
  isOperational,
  leaseItemKey,
  limits,
  namesIn,
  optionalTextIn,
  pagesOf,
  query,
  say,
  textIn,
  timeToLive,
  unlessUnreadable,
  unreadableIn,
  utf8Bytes,
  Write,
} from "@leasehold/client/internal";

/** A job with a schedule, as the registry stores it. */
export interface RegisteredJob {
  readonly job: string;
  /** An expression of EventBridge Scheduler. */
  readonly schedule: string;
  /** An IANA name; undefined for UTC. */
  readonly timeZone: string | undefined;
}

/** The key that all jobs of a table are registered under. */
const registryKey = "leasehold/registry";
const jobSortKeyPrefix = "job#";
const scheduleAttribute = "schedule";
const timeZoneAttribute = "timeZone";
const { partitionKey, sortKey } = attributeNames;

/** Written again when the entry is a day old, or has changed. */
const registersInZone = say({
  set: "#schedule = :schedule, #timeZone = :timeZone, #ttl = :ttl",
  when: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :schedule OR #timeZone <> :timeZone)",
});
const registersInUtc = say({
  set: "#schedule = :schedule, #ttl = :ttl",
  remove: "#timeZone",
  when: "(attribute_not_exists(#ttl) OR #ttl < :ifTtl OR #schedule <> :schedule OR attribute_exists(#timeZone))",
});

/** An entry that is younger than a day is not written again. */
const freshMs = 24 * 60 * 60 * 1000;

/** The longest time that a run waits for the registration at its end. */
const longestRegistrationMs = 3_000;

/** Registers one job, and renews its entry. */
export class JobRegistration {
  readonly #core: Core;
  readonly #keepForMs: number;
  readonly #entry: RegisteredJob;
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(core: Core, keepForMs: number, entry: RegisteredJob) {
    this.#core = core;
    this.#keepForMs = keepForMs;
    this.#entry = entry;
  }

  /**
   * Writes the entry: 1 request, and none for a day after that. An error of the service is ignored: a run does not fail
   * because tools do not find its job, and the next run tries again.
   */
  async keep(): Promise<void> {
    const { clock } = this.#core;
    const last = this.#writtenAt;
    if (clock.monotonic() - last < freshMs) return;
    this.#writtenAt = clock.monotonic();
    try {
      await this.#core.update(this.#write(clock.now()), { withinMs: longestRegistrationMs });
    } catch (error) {
      this.#writtenAt = last;
      if (!isOperational(error)) throw error;
    }
  }

  #write(now: number): Write {
    const { job, schedule, timeZone } = this.#entry;
    // A process that finds it young looks again after a day: then it may be two days old.
    const expiry = timeToLive(now + 2 * freshMs, this.#keepForMs);
    const values = { ":schedule": schedule, ":ttl": expiry, ":ifTtl": expiry - freshMs / 1000 };
    const itemKey = leaseItemKey(registryKey, jobSortKeyPrefix + job);
    return timeZone === undefined
      ? new Write(itemKey, registersInUtc, values)
      : new Write(itemKey, registersInZone, { ...values, ":timeZone": timeZone });
  }
}

/** Whether a job's name is short enough to be registered. */
export function canBeRegistered(job: string): boolean {
  return utf8Bytes(jobSortKeyPrefix + job) <= limits.sortKeyBytes;
}

/**
 * Returns the registered jobs of a table, in the order of their names: those that have run with a `schedule`.
 *
 * 1 request for each megabyte of them, about 5000 jobs. May lag a moment behind. An unreadable entry is left out, and
 * the client's `unreadable` event names it. Rejects with the client's service errors.
 *
 * ```ts
 * for (const { job, schedule, timeZone } of await registeredJobs(client)) console.log(job, schedule, timeZone ?? "UTC");
 * ```
 */
export async function registeredJobs(client: LeaseClient): Promise<RegisteredJob[]> {
  const core = coreOf(client);
  const keyCondition = `#${partitionKey} = :key AND begins_with(#${sortKey}, :prefix)`;
  const values = { ":key": registryKey, ":prefix": jobSortKeyPrefix };
  const asked: Omit<QueryRequest, "after"> = {
    keyCondition,
    names: namesIn(keyCondition),
    values,
    consistent: false,
  };
  const jobs: RegisteredJob[] = [];
  for await (const { items } of pagesOf((after) => query(core, { ...asked, ...after }))) {
    for (const item of items) {
      const entry = unlessUnreadable(() => registeredJobIn(item), unreadableIn(core));
      if (entry !== undefined) jobs.push(entry);
    }
  }
  return jobs;
}

function registeredJobIn(item: Item): RegisteredJob {
  return {
    job: textIn(item, sortKey).slice(jobSortKeyPrefix.length),
    schedule: textIn(item, scheduleAttribute),
    timeZone: optionalTextIn(item, timeZoneAttribute),
  };
}
