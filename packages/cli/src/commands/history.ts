// The past of a key, and what operators have done.

import type { AuditEntry } from "@leasehold/client/admin";
import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { choice, defined, duration, text, whole, yes } from "../flags.ts";
import { ageText, fold, shown, timeText } from "../terminal/text.ts";
import { detailText, historyEntries, whatCell } from "../view/history.ts";
import { globTest } from "../view/rows.ts";

export const history = command({
  usage: "history KEY",
  details: `
Shows what has happened to a key: who acquired it, for how long it was held and how that ended, and what operators did. Holds
are recorded where the table is made with LeaseTable({ history }); what operators did is kept for 30 days always.

leasehold history nightly-report --since 2d`,
  writes: false,
  flags: {
    since: duration("only of the last so long, as 24h"),
    limit: whole("at most so many lines, the latest ones", { least: 1 }),
  },
  async run({ flags, global, connect, printer, terminal }, key) {
    const { since: sinceMs, limit } = flags;
    const { operator } = await connect();
    const since = defined({ sinceMs });
    const changes = await Array.fromAsync(operator.history(key, since));
    const audit = await Array.fromAsync(operator.audit({ key, ...since }));
    const entries = historyEntries(changes, audit).slice(limit === undefined ? 0 : -limit);
    const zone = global.local ? "local" : "utc";
    printer.list({
      kind: "change",
      rows: entries,
      columns: [
        { title: `WHEN (${zone.toUpperCase()})`, cell: ({ at }) => timeText(at, zone) },
        { title: "WHAT", cell: whatCell },
        { title: "WHO", cell: ({ owner = "—" }) => owner, gives: true, from: 50 },
        { title: "HELD", cell: ({ heldForMs: ms }) => (ms === undefined ? "" : ageText(ms)), align: "right" },
        { title: "DETAIL", cell: detailText, gives: true, from: 70 },
      ],
      record: (entry) => ({ key, ...entry }),
      key: () => key,
    });
    if (changes.length > 0) {
      if (printer.isForPeople)
        terminal.say("Holds are recorded, for the table keeps a history: LeaseTable({ history }).");
      return exitCodes.done;
    }
    const missing = `No history of ${shown(key)} is kept${sinceMs === undefined ? "" : " of that time"}: only what operators did is. To record every hold, make the table with LeaseTable({ history: Duration.days(30) }) of @leasehold/cdk.`;
    for (const line of fold(missing, 100)) terminal.say(line);
    return exitCodes.nothing;
  },
});

const actions = ["stop", "break", "pause", "resume", "skip", "requeue", "cancel"] as const;

export const audit = command({
  usage: "audit [KEY]",
  details: `
Shows what operators have done, the latest first: by whom, to which lease, run or task, and why. Traces are kept for 30 days. Without a key
it reads the whole table, a megabyte a request.`,
  writes: false,
  flags: {
    prefix: text("PREFIX", "keys that begin so"),
    since: duration("only of the last so long, as 24h"),
    by: text("GLOB", "only what such an operator did, as 'alice@*'"),
    action: choice(actions, "only this"),
    limit: whole("at most so many lines", { least: 1 }),
    "fail-if-empty": yes("exit with 1 where nothing is found"),
  },
  async run({ flags, global, connect, printer, terminal }, key?: string) {
    const { operator } = await connect();
    const { prefix, since: sinceMs, by, action, limit } = flags;
    const isBy = by === undefined ? () => true : globTest(by);
    const traces = await Array.fromAsync(operator.audit(defined({ key, prefix, sinceMs })));
    const entries = traces
      .filter((entry) => isBy(entry.by) && (action === undefined || entry.action === action))
      .sort((one, other) => other.at - one.at);
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
      key: (entry) => entry.key,
    });
    if (printer.isForPeople && entries.length === 0) terminal.say("operators have done nothing that is kept");
    return entries.length === 0 && flags["fail-if-empty"] ? exitCodes.nothing : exitCodes.done;
  },
});
