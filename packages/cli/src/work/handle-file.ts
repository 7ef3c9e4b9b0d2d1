// The file of a lease's handle. Its token is the holder's secret, so nobody else may read it. A lease must not depend
// on a handle that could not be written, so the room for it exists before the lease.

import { randomUUID } from "node:crypto";
import { type FileHandle, open, readFile, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { Lease, LeaseClient, LeaseHandle } from "@leasehold/client";
import { parsedJson, seatSortKeys } from "@leasehold/client/internal";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { mostPermits, Semaphore } from "@leasehold/client/semaphore";
import type { Call } from "../command.ts";
import { CommandError, exitCodes, UsageError } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

/** More than any handle needs: a key, an owner and a seat's payload at their largest, with room for escapes. */
const roomBytes = 32_768;
const ownerOnly = 0o600;

/** Adopts a lease of any kind. The kind of seat that a handle names is the table's to say. */
export function adoptHandle(client: LeaseClient, handle: LeaseHandle): Lease {
  const { key, sortKey } = handle;
  if (sortKey === seatSortKeys.semaphore)
    return new Semaphore(client, key, { permits: mostPermits }).adopt(handle);
  if (sortKey === seatSortKeys.readWrite) return new ReadWriteLock(client, key).adopt(handle);
  return client.adopt(handle);
}

/** A handle's file before it has its handle: a file of another name beside it, with enough room. */
export class HandleFile {
  readonly #path: string;
  readonly #draftPath: string;
  readonly #draft: FileHandle;

  private constructor(path: string, draftPath: string, draft: FileHandle) {
    this.#path = path;
    this.#draftPath = draftPath;
    this.#draft = draft;
  }

  /** Reserves the room. Rejects with a CommandError (74), also if the disk is full. */
  static async prepare(path: string): Promise<HandleFile> {
    const draftPath = `${path}.${randomUUID().slice(0, 8)}.tmp`;
    const draft = await open(draftPath, "wx", ownerOnly).catch((error) => failed("make", path, error));
    const file = new HandleFile(path, draftPath, draft);
    try {
      await draft.write(Buffer.alloc(roomBytes, " "), 0, roomBytes, 0);
      await draft.sync();
    } catch (error) {
      await file.discard();
      failed("write", path, error);
    }
    return file;
  }

  /** Puts the handle in its place, and replaces an older one atomically. Rejects with a CommandError (74). */
  async save(handle: LeaseHandle): Promise<void> {
    try {
      const bytes = Buffer.from(`${JSON.stringify(handle)}\n`);
      await this.#draft.write(bytes, 0, bytes.length, 0);
      await this.#draft.truncate(bytes.length);
      await this.#draft.sync();
      await this.#draft.close();
      await rename(this.#draftPath, this.#path);
    } catch (error) {
      await this.discard();
      failed("write", this.#path, error);
    }
  }

  /** Removes the draft. */
  async discard(): Promise<void> {
    // Ignored: the draft is closed or gone already, or the error that led here says what is wrong.
    await this.#draft.close().catch(() => {});
    await unlink(this.#draftPath).catch(() => {});
  }
}

/**
 * Reads a handle from a file, or from stdin for `-`, until the signal aborts, because stdin may have no writer. Rejects
 * with a CommandError.
 */
export async function readHandle(
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

/** The content of a file; undefined if there is none. Rejects with a CommandError (74). */
export async function contentOf(path: string): Promise<string | undefined> {
  return await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : failed("read", path, error),
  );
}

/** The handle in a file's content; undefined if the content is something else. */
export function handleIn(content: string): LeaseHandle | undefined {
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
