import { LeaseAdmin } from "@leasehold/client/admin";
import { coreOf } from "@leasehold/client/internal";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { durationText } from "../terminal/durations.ts";
import { shown } from "../terminal/text.ts";
import { readHandle } from "../work/handle-file.ts";

export default command({
  usage: "check FILE",
  details: `
Whether the lease of a handle is still held by it, by the table and the service's time: exit 0, or 76 where it is not.
1 consistent read. The answer is a moment old: what must not happen without the lease needs its fencing token.`,
  writes: false,
  operands: [1, 1],
  flags: {},
  async run({ operands: [path = ""], connect, terminal, signal, printer }) {
    const handle = await readHandle(path, { terminal, signal });
    const { client } = await connect(handle.tableName);
    const admin = new LeaseAdmin(client);
    const { key, token, fencingToken, sortKey } = handle;
    // Several leases share the item of a seat.
    const records =
      handle.seat === undefined
        ? [await admin.inspect(key, sortKey === undefined ? {} : { sortKey })]
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
