import { fchmodSync, fstatSync } from "node:fs";
import type { Lease } from "@leasehold/client";
import { ifOperational } from "@leasehold/client/internal";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes, messageOf } from "../exit-codes.ts";
import { durationText } from "../terminal/durations.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { shown } from "../terminal/text.ts";
import { HandleFile } from "../work/handle-file.ts";
import { acquireHold, checkHoldFlags, holdFlags, leaseMsOf } from "../work/hold-flags.ts";

type AcquireCall = Call<typeof holdFlags>;

export default command({
  usage: "acquire KEY [FILE]",
  details: `
Acquires KEY and leaves it held, for --lease. The lease's handle goes to FILE, or to stdout; FILE is made for its owner
alone (mode 0600), before anything is acquired. Where the handle cannot be written, the lease is released again.

  leasehold acquire deploy/prod lease.json --lease 5m
  leasehold renew lease.json        # again and again, before the lease ends
  leasehold release lease.json`,
  writes: true,
  operands: [1, 2],
  flags: holdFlags,
  async run(call) {
    const { operands, flags, global } = call;
    const [key = "", path] = operands;
    checkHoldFlags(flags);
    const file = path === undefined || global["dry-run"] ? undefined : await HandleFile.prepare(path);
    try {
      return await acquireInto(call, key, file);
    } catch (error) {
      await file?.discard();
      throw error;
    }
  },
});

async function acquireInto(call: AcquireCall, key: string, file: HandleFile | undefined): Promise<number> {
  const { terminal } = call;
  if (file === undefined) makePrivate(terminal);
  const connection = await call.connect();
  const hold = await acquireHold(call, connection, key, {
    heartbeat: false,
    data: { by: "leasehold acquire" },
  });
  if (typeof hold === "number") {
    await file?.discard();
    return hold;
  }
  const { lease } = hold;
  try {
    if (file === undefined) await terminal.deliver(JSON.stringify(lease));
    else await file.save(lease.toJSON());
  } catch (error) {
    throw await afterRelease(lease, error);
  }
  connection.keepLeases();
  const ends = durationText(leaseMsOf(call.flags));
  terminal.say(`leasehold: ${shown(key)} acquired (fencing token ${lease.fencingToken}); it ends in ${ends}`);
  return exitCodes.done;
}

/** A lease without a handle is of no use to anybody, and in everybody's way. */
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

/** A shell makes the file of `> lease.json` for all to read. */
function makePrivate({ stdout }: Terminal): void {
  const { fd } = stdout as { readonly fd?: number };
  if (fd !== undefined && fstatSync(fd).isFile()) fchmodSync(fd, 0o600);
}
