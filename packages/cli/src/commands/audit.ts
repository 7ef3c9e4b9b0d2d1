import type { AuditEntry } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { choice, duration, text, whole, yes } from "../flags.ts";
import { timeText } from "../terminal/durations.ts";
import { globTest } from "../view/row-selection.ts";
import { operatorOn } from "./shared/intervention.ts";

const actions = ["stop", "break", "pause", "resume", "skip", "requeue", "cancel"] as const;

export default command({
  usage: "audit [KEY]",
  details: `
Shows what operators have done, the latest first: by whom, to which lease, run or task, and why. Traces are kept for 30 days. Without a key
it reads the whole table, a megabyte a request.`,
  writes: false,
  operands: [0, 1],
  flags: {
    prefix: text("PREFIX", "keys that begin so"),
    since: duration("only of the last so long, as 24h"),
    by: text("GLOB", "only what such an operator did, as 'alice@*'"),
    action: choice(actions, "only this"),
    limit: whole("at most so many lines", { least: 1 }),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
  },
  async run(call) {
    const { operands, flags, global, connect, printer, terminal } = call;
    const [key] = operands;
    const connection = await connect();
    const { prefix, since: sinceMs, by, action, limit } = flags;
    const isBy = by === undefined ? () => true : globTest(by);
    const entries: AuditEntry[] = [];
    const options = {
      ...(key === undefined ? {} : { key }),
      ...(prefix === undefined ? {} : { prefix }),
      ...(sinceMs === undefined ? {} : { sinceMs }),
    };
    for await (const entry of operatorOn(connection, call).audit(options)) {
      if (isBy(entry.by) && (action === undefined || entry.action === action)) entries.push(entry);
    }
    entries.sort((one, other) => other.at - one.at);
    const zone = global.local ? "local" : "utc";
    printer.list({
      kind: "action",
      rows: entries.slice(0, limit),
      columns: [
        { title: `WHEN (${zone.toUpperCase()})`, cell: ({ at }) => timeText(at, zone) },
        { title: "DID", cell: ({ action }) => action },
        ...(key === undefined ? [{ title: "KEY", cell: (entry: AuditEntry) => entry.key, gives: true }] : []),
        { title: "BY", cell: (entry) => entry.by, gives: true, from: 50 },
        { title: "HOLDER", cell: ({ holder }) => holder?.owner ?? "—", gives: true, from: 72 },
        { title: "WHY", cell: ({ reason = "" }) => reason, gives: true, from: 60 },
      ],
      record: (entry) => entry,
      key: (entry) => entry.key,
    });
    if (printer.isForPeople && entries.length === 0) terminal.say("operators have done nothing that is kept");
    return entries.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
