// The flags of an acquisition, which `run` and `acquire` share, and the lease that they lead to.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type {
  AcquireOptions,
  ContendedEvent,
  Item,
  Lease,
  LeaseClient,
  LeaseRecord,
  LeaseUnavailableError,
  SlotDoneError,
  WaitOrder,
} from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { coreOf, ifOperational, isPauseAlone, lastHolderIn } from "@leasehold/client/internal";
import { attributeNames, leaseItemKey, leaseSortKey } from "@leasehold/client/schema";
import type { Call } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, codeOf, exitCodes, UsageError } from "../exit-codes.ts";
import { defined, duration, type Flags, json, text, usually, type Values, whole, yes } from "../flags.ts";
import { cut, durationText, shown, timeText } from "../terminal/text.ts";
import { serviceNow } from "../view/table-snapshot.ts";

export const usualLeaseMs = 30_000;

/** The wanted lease, its duration, and the wait. */
export const holdFlags = {
  wait: usually(duration("how long to wait while another holds it (default 0: try once)", { short: "w" }), 0),
  "no-wait": yes("try once; the default", { short: "n" }),
  lease: usually(duration("how long the lease lasts unless it is renewed (default 30s)"), usualLeaseMs),
  "at-least": duration("how long it stays closed after it was acquired, also when it is released earlier"),
  slot: text("TEXT|minute|hour|day", "run once for this slot; minute, hour, day: the current one in UTC"),
  fair: yes("first come, first served, among all that say so"),
  "max-waiters": whole("with --fair: how many may wait before more are refused (default 100)", {
    least: 1,
    most: 500,
  }),
  permits: usually(
    whole(
      "how many may hold it at once: a semaphore where it is more than 1, which no lock of KEY excludes",
      {
        least: 1,
        most: 1_000,
      },
    ),
    1,
  ),
  read: yes("a read lock: others may read too; it excludes --write alone"),
  write: yes("the write lock: alone"),
  "mixed-ok": yes("acquire it although others use the key as another kind, which does not exclude them"),
  data: json("what others see beside the owner"),
  "held-exit": whole("exit code where another holds it (default 75)", { most: 255 }, { short: "E" }),
  "skip-ok": yes("exit 0 where another holds it or the slot is done, with a line on stderr"),
  "done-exit": whole("exit code where the slot is done (default 80)", { most: 255 }),
} satisfies Flags;

type HoldCall = Call<typeof holdFlags>;

export interface Hold {
  readonly lease: Lease;
  readonly slot: string | undefined;
  /** How long the call has waited for it; 0 if nobody was in the way. */
  readonly waitedMs: number;
}

/** Refuses flags that cannot be combined. Throws a UsageError. */
export function checkHoldFlags(flags: Values<typeof holdFlags>): void {
  const { permits, read, write, slot, wait, lease } = flags;
  const kinds = [permits > 1 && "--permits", read && "--read", write && "--write"].filter(Boolean);
  if (kinds.length > 1) throw new UsageError(`${kinds.join(" and ")} do not go together; give one of them`);
  const refuse = (flag: string): void => {
    throw new UsageError(`${flag} does not go together with ${kinds[0]}; leave one of them out`);
  };
  if (kinds.length > 0 && slot !== undefined) refuse("--slot");
  if ((read || write) && flags["at-least"] !== undefined) refuse("--at-least");
  if (flags["no-wait"] && wait > 0) throw new UsageError("--wait and --no-wait do not go together");
  const atLeast = flags["at-least"] ?? 0;
  if (atLeast > lease) {
    const allowed = `at most the lease, ${durationText(lease)}; a longer --lease allows more`;
    throw new UsageError(`--at-least is ${durationText(atLeast)}; allowed: ${allowed}`);
  }
}

/**
 * Acquires what the flags ask for. If another holder has it or the slot is done, reports that and returns the exit code
 * instead.
 */
export async function acquireHold(
  call: HoldCall,
  { client }: Connection,
  key: string,
  { heartbeat, data }: { readonly heartbeat: boolean; readonly data: unknown },
): Promise<Hold | number> {
  const { flags, clock, terminal, signal, by } = call;
  const { wait } = flags;
  if (!flags["mixed-ok"]) await checkKind(client, key, kindOf(flags));
  const slot =
    flags.slot !== undefined && isSlotUnit(flags.slot)
      ? await slotOfNow(client, key, flags.slot)
      : flags.slot;
  const startedAt = clock.monotonic();
  const order = await orderOf(call, key);
  const options = {
    leaseDurationMs: flags.lease,
    waitMs: wait,
    heartbeat,
    signal,
    data: flags.data === undefined ? data : flags.data,
    ...defined({ order, slot, lockAtLeastForMs: flags["at-least"] }),
  };
  let isContended = false;
  let told = Promise.resolve();
  const stopListening = onContention(key, by, (event) => {
    if (isContended) return;
    isContended = true;
    if (wait > 0) {
      told = holderText(client, event).then((holder) =>
        terminal.say(`leasehold: ${shown(key)} is ${holder}; waiting up to ${durationText(wait)} …`),
      );
      // Ignored: it is awaited below.
      told.catch(() => {});
    }
  });
  try {
    const lease = await acquireAs(client, key, flags, options);
    await told;
    return { lease, slot, waitedMs: isContended ? clock.monotonic() - startedAt : 0 };
  } catch (error) {
    await told;
    return await refusedBy(error, call, client, { key, slot });
  } finally {
    stopListening();
  }
}

function kindOf({ permits, read, write }: Values<typeof holdFlags>): KeyKind {
  if (read || write) return "read-write lock";
  return permits > 1 ? "semaphore" : "lock";
}

async function acquireAs(
  client: LeaseClient,
  key: string,
  { read, write, permits }: Values<typeof holdFlags>,
  { order, slot, ...options }: AcquireOptions,
): Promise<Lease> {
  const ordered = defined({ order });
  if (permits > 1) {
    const { Semaphore } = await import("@leasehold/client/semaphore");
    return await new Semaphore(client, key, { permits, ...ordered }).acquire(options);
  }
  if (read || write) {
    const { ReadWriteLock } = await import("@leasehold/client/read-write");
    const lock = new ReadWriteLock(client, key, ordered);
    return await (read ? lock.read(options) : lock.write(options));
  }
  return await client.acquire(key, { ...options, ...ordered, ...defined({ slot }) });
}

async function orderOf({ flags, terminal }: HoldCall, key: string): Promise<WaitOrder | undefined> {
  const maxWaiters = flags["max-waiters"];
  if (!flags.fair && maxWaiters === undefined) return undefined;
  const { fair } = await import("@leasehold/client/fair");
  let last = 0;
  return fair({
    ...defined({ maxWaiters }),
    onPosition: ({ position, estimatedWaitMs }) => {
      if (position === last) return;
      last = position;
      const about = estimatedWaitMs === undefined ? "" : `, about ${durationText(estimatedWaitMs)}`;
      terminal.say(`leasehold: number ${position} in line for ${shown(key)}${about}`);
    },
  });
}

/** Listens to the contention of this process's own calls. */
function onContention(key: string, by: string, listener: (event: ContendedEvent) => void): () => void {
  const onMessage = (message: unknown): void => {
    const event = message as ContendedEvent;
    if (event.key === key && event.owner === by) listener(event);
  };
  subscribe("leasehold:contended", onMessage);
  return () => unsubscribe("leasehold:contended", onMessage);
}

/** `held by bob@ci-7 (cli) for 3m 12s, "deploy.sh --tag 1.4.2"`. 1 read. */
async function holderText(
  client: LeaseClient,
  { key, holder, expiresAt, inCooldown }: Pick<ContendedEvent, "key" | "holder" | "expiresAt" | "inCooldown">,
): Promise<string> {
  if (inCooldown) return `closed until ${timeText(expiresAt)} UTC after ${shown(holder)} (--at-least)`;
  // The answer is only a detail of the message.
  const records = await new LeaseAdmin(client).inspectAll(key).catch(ifOperational([]));
  const record = records.find((one) => one.owner === holder && !one.inCooldown);
  if (record === undefined) return `held by ${shown(holder)}`;
  if (record.pause !== undefined) {
    const { by, reason } = record.pause;
    return `paused by ${shown(by)} until ${timeText(expiresAt)} UTC, "${cut(shown(reason), 60)}"`;
  }
  const command = commandIn(record);
  const doing = command === undefined ? "" : `, "${cut(shown(command), 60)}"`;
  const heldMs = Math.max(0, serviceNow(client) - record.acquiredAt);
  return `held by ${shown(holder)} for ${durationText(heldMs)}${doing}`;
}

/** ` since 2026-11-22 02:07:41 UTC (ip-10-0-9-4)`, if the table still has it. 1 query. */
async function doneText(client: LeaseClient, key: string): Promise<string> {
  // It is known that the slot is done, and this only adds details.
  const unknown = { lastHolder: undefined };
  const { lastHolder } = await new LeaseAdmin(client).describe(key).catch(ifOperational(unknown));
  if (lastHolder?.end !== "completed") return "";
  return ` since ${timeText(lastHolder.endedAt)} UTC (${shown(lastHolder.owner)})`;
}

function commandIn({ data }: LeaseRecord): string | undefined {
  const { cmd } = Object(data) as { readonly cmd?: unknown };
  return typeof cmd === "string" ? cmd : undefined;
}

/** Reports why nothing was acquired, and returns the exit code. Throws every error that is no refusal. */
async function refusedBy(
  error: unknown,
  { flags, terminal }: HoldCall,
  client: LeaseClient,
  { key, slot }: { readonly key: string; readonly slot: string | undefined },
): Promise<number> {
  const code = codeOf(error);
  const { wait } = flags;
  const skips = flags["skip-ok"];
  if (code === "LEASE_SLOT_DONE") {
    const { doneSlot } = error as SlotDoneError;
    const done = doneSlot === slot ? await doneText(client, key) : `, and so is ${shown(doneSlot)}`;
    terminal.say(`leasehold: the slot ${shown(slot ?? "")} of ${shown(key)} is done${done}; nothing to do`);
    return skips ? exitCodes.done : (flags["done-exit"] ?? exitCodes.slotDone);
  }
  if (code !== "LEASE_UNAVAILABLE" && code !== "LEASE_QUEUE_FULL") throw error;
  const { holder, expiresAt, inCooldown = false } = error as Partial<LeaseUnavailableError>;
  const state =
    code === "LEASE_QUEUE_FULL"
      ? "held, and its queue is full"
      : holder === undefined || expiresAt === undefined
        ? "not free"
        : await holderText(client, { key, holder, expiresAt, inCooldown });
  const gaveUp = wait > 0 ? `gave up after ${durationText(wait)}` : "--wait DUR waits for it";
  const line = `leasehold: ${shown(key)} is ${state}; ${skips ? "nothing to do" : gaveUp}`;
  if (skips) {
    terminal.say(line);
    return exitCodes.done;
  }
  terminal.complain(line);
  return flags["held-exit"] ?? exitCodes.held;
}

/** Finds the lease of an outer `leasehold run` around this call; undefined without one. 1 query. */
export async function outerHold(
  client: LeaseClient,
  key: string,
  env: NodeJS.ProcessEnv,
): Promise<LeaseRecord | undefined> {
  const { LEASEHOLD_TOKEN: token, LEASEHOLD_FENCING_TOKEN: fencingToken, LEASEHOLD_KEY: outerKey } = env;
  if (token === undefined || outerKey !== key) return undefined;
  const records = await new LeaseAdmin(client).inspectAll(key);
  const nowMs = serviceNow(client);
  const record = records.find(
    (one) =>
      one.token === token &&
      String(one.fencingToken) === fencingToken &&
      !one.inCooldown &&
      one.expiresAt > nowMs,
  );
  if (record !== undefined) return record;
  throw new CommandError(
    `the outer leasehold run no longer holds ${shown(key)} (LEASEHOLD_TOKEN and LEASEHOLD_FENCING_TOKEN are not the holder's): nothing was run`,
    exitCodes.lost,
  );
}

/** How a command uses a key. */
type KeyKind = "lock" | "semaphore" | "read-write lock";

const kinds: Readonly<Record<KeyKind, { readonly sortKey: string; readonly flags: string }>> = {
  lock: { sortKey: leaseSortKey, flags: "no such flag" },
  semaphore: { sortKey: "semaphore", flags: "--permits" },
  "read-write lock": { sortKey: "read-write", flags: "--read or --write" },
};

/**
 * Refuses a second kind of use of a key that has no item of the given kind yet. 2 reads, a third if one of them finds
 * an item. Throws a CommandError (64).
 */
async function checkKind(client: LeaseClient, key: string, kind: KeyKind): Promise<void> {
  const core = coreOf(client);
  const isUsed = async (one: KeyKind): Promise<boolean> => {
    const itemKey = leaseItemKey(key, kinds[one].sortKey);
    return showsUse(one, await core.get({ key: itemKey, consistent: true }));
  };
  const others = (Object.keys(kinds) as KeyKind[]).filter((one) => one !== kind);
  const found = await Promise.all(others.map(isUsed));
  const other = others[found.indexOf(true)];
  if (other === undefined || (await isUsed(kind))) return;
  const message =
    `${shown(key)} is used as a ${other} (${kinds[other].flags}), and a ${kind} of the same key would not exclude its ` +
    "holders. Give the same flags as they do, or another key; --mixed-ok allows it. Nothing done";
  throw new CommandError(message, exitCodes.usage);
}

/** Whether an item shows use by callers, and not only an operator's pause. */
function showsUse(kind: KeyKind, item: Item | undefined): boolean {
  if (item === undefined) return false;
  if (kind !== "lock") return !isPauseAlone(item);
  const { token, pauseToken, doneSlot } = attributeNames;
  const isHeld = item[token] !== undefined && item[token] !== item[pauseToken];
  const last = lastHolderIn(item);
  const wasHeld = last !== undefined && !last.owner.startsWith("paused by ");
  return isHeld || wasHeld || item[doneSlot] !== undefined;
}

const lengths = { minute: 16, hour: 13, day: 10 } as const;

/** A slot that follows the clock. */
export type SlotUnit = keyof typeof lengths;

/** cron fires by the machine's clock. If that is ahead by at most this, cron has fired for the slot that begins. */
const aheadMs = 5_000;

function isSlotUnit(text: string): text is SlotUnit {
  return Object.hasOwn(lengths, text);
}

/** The present slot: `2026-11-22T02:00Z`, `2026-11-22T02Z`, `2026-11-22`. 1 read. */
export async function slotOfNow(client: LeaseClient, key: string, unit: SlotUnit): Promise<string> {
  return slotAt(await timeForCron(client, key), unit);
}

/**
 * The time by which a slot is found. 1 read, whose answer has the service's time.
 *
 * A machine's own time counts if it is ahead by up to 5 s: then cron has fired for the slot that is about to begin.
 */
export async function timeForCron(client: LeaseClient, key: string): Promise<number> {
  await client.doneSlot(key);
  const { clock } = coreOf(client);
  const { wall } = clock.moment();
  const earliest = clock.earliest() ?? wall;
  const latest = clock.latest() ?? wall;
  return wall >= earliest && wall <= latest + aheadMs ? wall : earliest;
}

export function slotAt(epochMs: number, unit: SlotUnit): string {
  const text = new Date(epochMs).toISOString().slice(0, lengths[unit]);
  return unit === "day" ? text : `${text}Z`;
}
