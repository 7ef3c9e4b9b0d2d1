// A lease that no process holds: its handle, in a file, is acquired, renewed, released and checked. The handle's token is
// the holder's secret, so nobody else may read the file. A lease must not depend on a handle that could not be written,
// so the room for it exists before the lease.

import { randomUUID } from "node:crypto";
import { fchmodSync, fstatSync, linkSync, readFileSync, renameSync } from "node:fs";
import { open, readFile, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { Lease, LeaseClient, LeaseHandle } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { coreOf, ifOperational, parsedJson, seatSortKeys } from "@leasehold/client/internal";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { mostPermits, Semaphore } from "@leasehold/client/semaphore";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { defined, yes } from "../flags.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { durationText, shown } from "../terminal/text.ts";
import { quoted } from "../view/next-steps.ts";
import { serviceNow } from "../view/table-snapshot.ts";
import { acquireHold, checkHoldFlags, holdFlags } from "../work/hold.ts";

/** More than any handle needs: a key, an owner and a seat's payload at their largest, with room for escapes. */
const roomBytes = 32_768;
const ownerOnly = 0o600;

/** Adopts a lease of any kind. The kind of seat that a handle names is the table's to say. */
function adoptHandle(client: LeaseClient, handle: LeaseHandle): Lease {
  const { key, sortKey } = handle;
  if (sortKey === seatSortKeys.semaphore)
    return new Semaphore(client, key, { permits: mostPermits }).adopt(handle);
  if (sortKey === seatSortKeys.readWrite) return new ReadWriteLock(client, key).adopt(handle);
  return client.adopt(handle);
}

/**
 * Reserves the room for a handle's file: a file of another name beside it, which is discarded in the end. Rejects with a
 * CommandError (74), also if the disk is full.
 */
async function prepareFile(path: string) {
  const draftPath = `${path}.${randomUUID().slice(0, 8)}.tmp`;
  const draft = await open(draftPath, "wx", ownerOnly).catch((error) => failed("make", path, error));
  const discard = async (): Promise<void> => {
    // Ignored: the draft is closed or gone already, or the error that led here says what is wrong.
    await draft.close().catch(() => {});
    await unlink(draftPath).catch(() => {});
  };
  /** Puts the draft into a place without a file: of several calls, one gets it. */
  const claimPlace = (): void => {
    try {
      linkSync(draftPath, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
      // This file system has no links.
      renameSync(draftPath, path);
    }
  };
  /**
   * Puts the handle in its place, and replaces an older one atomically; only the content `seen`, if that is given.
   * Rejects with a CommandError (74), and leaves the draft.
   */
  const save = async (
    handle: LeaseHandle,
    seen?: { readonly content: string | undefined },
  ): Promise<void> => {
    try {
      const bytes = Buffer.from(`${JSON.stringify(handle)}\n`);
      await draft.write(bytes, 0, bytes.length, 0);
      await draft.truncate(bytes.length);
      await draft.sync();
      await draft.close();
      // Nothing is awaited in between: what another call writes after the look would be lost.
      if (seen !== undefined && contentOf(path) !== seen.content)
        throw new Error("another process has written it meanwhile");
      if (seen !== undefined && seen.content === undefined) claimPlace();
      else renameSync(draftPath, path);
    } catch (error) {
      failed("write", path, error);
    }
  };
  try {
    await draft.write(Buffer.alloc(roomBytes, " "), 0, roomBytes, 0);
    await draft.sync();
  } catch (error) {
    await discard();
    failed("write", path, error);
  }
  return { save, discard };
}

/**
 * Reads a handle from a file, or from stdin for `-`, until the signal aborts, because stdin may have no writer. Rejects
 * with a CommandError.
 */
async function readHandle(
  path: string,
  { terminal: { stdin }, signal }: Pick<Call, "terminal" | "signal">,
): Promise<LeaseHandle> {
  const reading =
    path === "-"
      ? text(addAbortSignal(signal, stdin as Readable))
      : readFile(path, { encoding: "utf8", signal });
  const read = await reading.catch((error) => failed("read", path, error));
  const handle = handleIn(read);
  if (handle !== undefined) return handle;
  const advice = "allowed: what leasehold acquire, or lease.toJSON(), has written";
  throw new UsageError(`${shown(path)} holds no handle of a lease; ${advice}`);
}

/** Rejects with a CommandError (74) for what is there and no file: a handle takes the place of a device or a pipe. */
async function refuseDevice(path: string): Promise<void> {
  const there = await stat(path).catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : failed("read", path, error),
  );
  if (there === undefined || there.isFile()) return;
  throw new CommandError(`${shown(path)} is no file, and a handle would take its place`, exitCodes.file);
}

/** The content of a file; undefined if there is none. Throws a CommandError (74). */
function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : failed("read", path, error);
  }
}

/** The handle in a file's content; undefined if the content is something else. */
function handleIn(content: string): LeaseHandle | undefined {
  const handle = parsedJson(content)?.value as LeaseHandle | null | undefined;
  return typeof handle?.tableName === "string" ? handle : undefined;
}

function failed(what: string, path: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException;
  const where = code === "ENOENT" && what === "make" ? `: is there a folder ${shown(dirname(path))}?` : "";
  throw new CommandError(`cannot ${what} ${shown(path)} (${code ?? message})${where}`, exitCodes.file, {
    cause: error,
  });
}

type AcquireCall = Call<typeof holdFlags>;

export const acquire = command({
  usage: "acquire KEY [FILE]",
  details: `
Acquires KEY and leaves it held, for --lease. The lease's handle goes to FILE, or to stdout; FILE is made for its owner
alone (mode 0600), before anything is acquired. Where the handle cannot be written, the lease is released again. A FILE with
the handle of another lease that is held is refused (74).

  leasehold acquire deploy/prod lease.json --lease 5m
  leasehold renew lease.json        # again and again, before the lease ends
  leasehold release lease.json`,
  writes: true,
  flags: holdFlags,
  async run(call, key, path?: string) {
    const { flags, global } = call;
    checkHoldFlags(flags);
    if (path === undefined || global["dry-run"]) {
      if (path === undefined) makePrivate(call.terminal);
      return await acquireInto(call, key, (lease) => call.terminal.deliver(JSON.stringify(lease)));
    }
    await refuseDevice(path);
    const content = contentOf(path);
    await refuseLiving(call, key, { path, handle: handleIn(content ?? "") });
    const file = await prepareFile(path);
    try {
      return await acquireInto(call, key, (lease) => file.save(lease.toJSON(), { content }));
    } finally {
      await file.discard();
    }
  },
});

/**
 * Rejects with a CommandError (74) if the lease of an earlier handle is held: without the handle, it could not be
 * renewed or released. 1 query.
 */
async function refuseLiving(
  call: AcquireCall,
  key: string,
  { path, handle }: { readonly path: string; readonly handle: LeaseHandle | undefined },
): Promise<void> {
  if (handle === undefined) return;
  const { client, tableName } = await call.connect();
  const { permits, read, write } = call.flags;
  const isSameTable = handle.tableName === tableName;
  // Then this call gets the lock only when that lease has ended.
  if (isSameTable && handle.key === key && handle.seat === undefined && permits === 1 && !read && !write)
    return;
  const records = isSameTable ? await new LeaseAdmin(client).inspectAll(handle.key) : [handle];
  const living = records.find(
    ({ token, expiresAt }) => token === handle.token && expiresAt > serviceNow(client),
  );
  if (living === undefined) return;
  const left = durationText(living.expiresAt - serviceNow(client));
  const advice = `leasehold release ${quoted(path)} ends it; or name another file`;
  throw new CommandError(
    `${shown(path)} has the handle of ${shown(handle.key)}, which may be held for ${left}: ${advice}`,
    exitCodes.file,
  );
}

async function acquireInto(
  call: AcquireCall,
  key: string,
  keep: (lease: Lease) => Promise<void>,
): Promise<number> {
  const { terminal } = call;
  const connection = await call.connect();
  const hold = await acquireHold(call, connection, key, {
    heartbeat: false,
    data: { by: "leasehold acquire" },
  });
  if (typeof hold === "number") return hold;
  const { lease } = hold;
  try {
    await keep(lease);
  } catch (error) {
    throw await afterRelease(lease, error);
  }
  connection.keepLeases();
  const ends = durationText(call.flags.lease);
  terminal.say(`leasehold: ${shown(key)} acquired (fencing token ${lease.fencingToken}); it ends in ${ends}`);
  return exitCodes.done;
}

/** A lease without a handle helps nobody, and blocks all others. */
async function afterRelease(lease: Lease, error: unknown): Promise<CommandError> {
  // The message says that it stays held.
  const isReleased = await lease.release().catch(ifOperational(false));
  const reason = messageOf(error);
  const outcome = isReleased
    ? "it is released again"
    : `it stays held for ${durationText(lease.remainingMs())}`;
  const message = `the handle of ${shown(lease.key)} could not be written: ${shown(reason)}; ${outcome}`;
  return new CommandError(message, exitCodes.file, { cause: error });
}

/** A shell makes the file of `> lease.json` readable for all. Throws a CommandError (74) if it stays so. */
function makePrivate({ stdout }: Terminal): void {
  const { fd } = stdout as { readonly fd?: number };
  if (fd === undefined || !fstatSync(fd).isFile()) return;
  try {
    fchmodSync(fd, ownerOnly);
  } catch (error) {
    failed("protect", "stdout", error);
  }
}

export const renew = command({
  usage: "renew FILE",
  details: `
Prolongs the lease of a handle by its duration, counted from now, and writes the new handle over the old one; with - it
reads stdin and writes stdout. Exit 76 where another has it by now. 1 request.`,
  writes: true,
  flags: {},
  async run({ connect, terminal, signal, global }, path) {
    const isFile = path !== "-" && !global["dry-run"];
    if (isFile) await refuseDevice(path);
    const handle = await readHandle(path, { terminal, signal });
    const file = isFile ? await prepareFile(path) : undefined;
    try {
      const connection = await connect({ table: handle.tableName });
      const lease = adoptHandle(connection.client, handle);
      // The handle holds the lease, and not this process.
      connection.keepLeases();
      await lease.renew();
      if (file === undefined) await terminal.deliver(JSON.stringify(lease));
      else await file.save(lease.toJSON());
      const ends = durationText(lease.remainingMs());
      terminal.say(`leasehold: ${shown(lease.key)} renewed; it ends in ${ends}`);
      return exitCodes.done;
    } finally {
      await file?.discard();
    }
  },
});

export const release = command({
  usage: "release FILE",
  details: `
Releases the lease of a handle (- reads it from stdin). Exit 76 where it was no longer the holder's. 1 request.`,
  writes: true,
  flags: { complete: yes("record the slot as done, so that nobody runs it again") },
  async run({ flags, connect, terminal, signal }, path) {
    const handle = await readHandle(path, { terminal, signal });
    if (flags.complete && handle.slot === undefined) {
      throw new UsageError(
        `--complete: the lease of ${shown(handle.key)} is for no slot; acquire it with --slot`,
      );
    }
    const connection = await connect({ table: handle.tableName });
    const lease = adoptHandle(connection.client, handle);
    const wasOurs = await (flags.complete ? lease.complete() : lease.release());
    if (wasOurs) {
      const what = flags.complete ? `released, and ${shown(handle.slot ?? "")} is done` : "released";
      terminal.say(`leasehold: ${shown(lease.key)} ${what}`);
      return exitCodes.done;
    }
    terminal.complain(
      `leasehold: ${shown(lease.key)} is not held by this handle any more: nothing was released`,
    );
    return exitCodes.lost;
  },
});

export const check = command({
  usage: "check FILE",
  details: `
Whether the lease of a handle is still held by it, by the table and the service's time: exit 0, or 76 where it is not.
1 consistent read. The answer is a moment old: what must not happen without the lease needs its fencing token.`,
  writes: false,
  flags: {},
  async run({ connect, terminal, signal, printer }, path) {
    const handle = await readHandle(path, { terminal, signal });
    const { client } = await connect({ table: handle.tableName });
    const admin = new LeaseAdmin(client);
    const { key, token, fencingToken, sortKey } = handle;
    // Several leases share the item of a seat.
    const records =
      handle.seat === undefined
        ? [await admin.inspect(key, defined({ sortKey }))]
        : await admin.inspectAll(key);
    const record = records.find((one) => one?.token === token && one.fencingToken === fencingToken);
    const { clock } = coreOf(client);
    const remainingMs =
      record === undefined ? 0 : Math.max(0, record.expiresAt - (clock.latest() ?? clock.now()));
    const held = remainingMs > 0;
    const other = records.find((one) => one !== undefined && one !== record);
    const state = held
      ? `held for another ${durationText(remainingMs)}`
      : record !== undefined
        ? "EXPIRED: the next caller takes it over"
        : other === undefined
          ? "not held any more"
          : `held by ${shown(other.owner)} now`;
    printer.document("handle", { key, held, remainingMs: Math.round(remainingMs) }, () => [
      `${shown(key)}: ${state}`,
    ]);
    return held ? exitCodes.done : exitCodes.lost;
  },
});
