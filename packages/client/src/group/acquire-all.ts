import type { LeaseClient } from "../client.ts";
import { type ClientInternals, internalsOf } from "../client-internals.ts";
import { untilAborted } from "../errors/aborted.ts";
import { InvalidOptionsError } from "../errors/errors.ts";
import { ifOperational } from "../errors/operational.ts";
import { Lease } from "../lease.ts";
import { type AcquisitionTerms, checkAcquireOptions, slotlessOptionNames } from "../options/check-options.ts";
import { check, checkData, checkKey, checkKnown, readable } from "../options/check-values.ts";
import type { WaitOptions } from "../options/options.ts";
import { contentionOf } from "../protocol/announcement.ts";
import type { HeldLease } from "../protocol/held-lease.ts";
import { whileOpen } from "../protocol/lifecycle.ts";
import { LockForm } from "../protocol/lock-form.ts";
import { isTraced, traced } from "../protocol/tracing.ts";
import { leaseSortKey, limits, utf8Bytes } from "../schema.ts";
import { GroupAcquisition, type GroupGranted } from "./group-acquisition.ts";
import { GroupWait } from "./group-wait.ts";
import { LeaseGroup, type Member } from "./lease-group.ts";

/** Options of {@link acquireAll}: those of `client.acquire`, for all locks alike. */
export type GroupOptions = Omit<WaitOptions, "slot">;

const optionNames: readonly (keyof GroupOptions)[] = [...slotlessOptionNames, "waitMs", "retry"];

/** DynamoDB's limit for one transaction's items. */
const mostKeys = 100;
/** DynamoDB's limit for the size of one transaction's items together. */
const transactionBytes = 4 * 1024 * 1024;
/** Our own share of an item: its key, its owner and every other attribute but the payload. */
const itemBytes = 8 * 1024;

/**
 * Acquires several locks, all of them or none, waiting up to `waitMs` for their holders.
 *
 * 1 transaction when all are free, of 2 write units for each lock; 2 when some have to be taken over from holders
 * whose leases have ended. While it waits it holds none of them, and reads, mostly 1 lock each time. So callers that
 * want the same locks in different orders cannot deadlock. But there is no order: a caller of many busy locks can
 * wait for longer than a caller of one. Transactions that conflict cancel each other. They are repeated with jitter
 * for up to 2 s, even without `waitMs`.
 *
 * `keys` are 1 to 100 different keys. `data` is stored with each of them, at most 4 MB in all. A lease cannot stand
 * for a `slot` here.
 *
 * With `reentrant`, locks that the owner holds reentrantly through this client are shared without a request. Its
 * reentrant locks from elsewhere are taken over with the rest. In that case it does hold some locks while it waits
 * for others. Two owners that do so in opposite order wait for each other until one of them gives up.
 *
 * Rejects with GroupUnavailableError, which names the held locks and their holders; with LeaseLostError when a lease of
 * a reentrant owner has ended during the wait for the others; with InvalidOptionsError before it sends anything; with
 * LeaseServiceError, LeaseTableError and LeaseConfigurationError; with LeaseAbortedError when the signal aborts, which
 * names the first lock. In every case of failure nothing stays held.
 *
 * ```ts
 * await using group = await acquireAll(client, ["stock/7", "order/42"], { waitMs: 5_000, heartbeat: true });
 * await documents.send(
 *   new TransactWriteCommand({
 *     TransactItems: [
 *       ...group.conditionChecks(),
 *       { Put: { TableName: "orders", Item: { id: "42", state: "closed" } } },
 *     ],
 *   }),
 * );
 * ```
 */
export async function acquireAll(
  client: LeaseClient,
  keys: readonly string[],
  options: GroupOptions = {},
): Promise<LeaseGroup> {
  const inner = internalsOf(client);
  const wanted = checkKeys(keys);
  const { terms, data } = checkOptions(inner, options, wanted);
  const { lifecycle, table } = inner.context;
  const { signal } = terms;
  const acquire = (): Promise<LeaseGroup> =>
    whileOpen(lifecycle, signal, (cut) => acquireThese(inner, wanted, { ...terms, signal: cut }, data));
  const trace = { ...terms, sortKey: leaseSortKey };
  return await untilAborted(wanted[0] ?? "", signal, () =>
    isTraced() ? traced(table, wanted, trace, acquire) : acquire(),
  );
}

/** Shares the locks that a reentrant owner has already, and acquires the others. */
async function acquireThese(
  inner: ClientInternals,
  wanted: readonly string[],
  terms: AcquisitionTerms,
  data: string | undefined,
): Promise<LeaseGroup> {
  const { context, acquirer, format } = inner;
  let won: readonly HeldLease[] = [];
  const winThese = async (missing: readonly { readonly key: string }[]): Promise<readonly HeldLease[]> => {
    const keys = missing.map(({ key }) => key);
    won = await win(inner, keys, terms, data);
    return won;
  };
  const { owner, leaseDurationMs, askedDurationMs, lockAtLeastForMs } = terms;
  const wish = { sortKey: leaseSortKey, owner, slot: undefined, data, askedDurationMs, lockAtLeastForMs };
  const wishes = wanted.map((key) => ({ key, ...wish }));
  for (const key of wanted) context.noteLease({ key, sortKey: leaseSortKey, owner, leaseDurationMs });
  const heldLeases = terms.reentrant
    ? await acquirer.reentrant.shareAll(wishes, terms, winThese)
    : await winThese(wishes);
  const members = heldLeases.map((held) => {
    acquirer.keepAlive(held, terms.heartbeatMs);
    return { held, lease: new Lease(context, held, format, undefined) };
  });
  const group = new LeaseGroup(context, members as [Member, ...Member[]], won[0]);
  context.lifecycle.throwIfClosed();
  if (group.held) return group;
  // A lease that the owner had before has ended during the wait for the others.
  await group.release().catch(ifOperational(undefined));
  throw group.signal.reason;
}

/** Acquires several locks together. */
async function win(
  inner: ClientInternals,
  keys: readonly string[],
  terms: AcquisitionTerms,
  data: string | undefined,
): Promise<HeldLease[]> {
  const { clock } = inner.context;
  const startedAt = clock.monotonic();
  const { records, belief, takeovers } = await grant(inner, keys, terms, data);
  const waitedMs = clock.monotonic() - startedAt;
  return records.map((record) => {
    const takeover = takeovers.get(record.key);
    const granted = { record, belief, takeovers: takeover === undefined ? [] : [takeover] };
    const form = new LockForm(record.key, record.sortKey);
    return inner.acquirer.begin(form, { ...terms, slot: undefined }, granted, waitedMs);
  });
}

async function grant(
  { context }: ClientInternals,
  keys: readonly string[],
  terms: AcquisitionTerms,
  data: string | undefined,
): Promise<GroupGranted> {
  const { owner, leaseDurationMs, reentrant } = terms;
  const acquisition = new GroupAcquisition(context, {
    keys,
    owner,
    leaseDurationMs,
    reentrant,
    data,
    waitMs: terms.waitMs,
  });
  const wait = new GroupWait(context, keys, terms);
  try {
    return await wait.grant(acquisition, contentionOf(context, owner));
  } catch (error) {
    acquisition.abandon();
    throw error;
  }
}

function checkKeys(keys: unknown): readonly string[] {
  const allowed = `an array of 1 to ${mostKeys} different keys`;
  const wanted = readable("keys", keys, () => {
    check(Array.isArray(keys), "keys", keys, allowed);
    // A copy: a hole in the array counts as a missing key.
    return [...keys].map(checkKey);
  });
  const { length } = wanted;
  const isInRange = length >= 1 && length <= mostKeys;
  if (!isInRange) throw new InvalidOptionsError("keys", length, allowed, { finding: `are ${length}` });
  const twice = wanted.find((key, index) => wanted.indexOf(key) !== index);
  if (twice === undefined) return wanted;
  const finding = `name ${JSON.stringify(twice)} more than once`;
  throw new InvalidOptionsError("keys", twice, allowed, { finding, advice: "leave the repetition out" });
}

function checkOptions(
  { owner, times }: ClientInternals,
  options: GroupOptions,
  keys: readonly string[],
): { readonly terms: AcquisitionTerms; readonly data: string | undefined } {
  const { slot, ...given }: WaitOptions = checkKnown(options, [...optionNames, "slot"], "options");
  check(slot === undefined, "slot", slot, "nothing: only a single lease can have it");
  const terms = checkAcquireOptions(given, true, owner, times);
  const data = checkData(terms.data);
  const bytes = keys.length * (itemBytes + (data === undefined ? 0 : utf8Bytes(data)));
  const allowed = `at most ${limits.dataBytes} bytes for one lock, and ${transactionBytes} for all with ${itemBytes} of our own each`;
  if (bytes > transactionBytes) {
    const finding = `needs ${bytes} bytes for ${keys.length} locks`;
    throw new InvalidOptionsError("data", bytes, allowed, { finding, advice: "store it elsewhere" });
  }
  return { terms, data };
}
