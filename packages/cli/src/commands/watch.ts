import { spawn } from "node:child_process";
import { once } from "node:events";
import { type Call, command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { duration, text, yes } from "../flags.ts";
import { ageText, timeText } from "../terminal/durations.ts";
import type { Style } from "../terminal/table.ts";
import { cut, shown } from "../terminal/text.ts";
import { costText } from "../view/read-cost.ts";
import { type TableEvent, tableEvents } from "../view/table-events.ts";
import { readTable, type TableSnapshot, usualMostItems } from "../view/table-snapshot.ts";
import { looks, paceFlags, paceOf } from "./shared/polling.ts";
import { fenceText } from "./shared/row-columns.ts";
import { priceOfTable } from "./shared/table-price.ts";

export default command({
  usage: "watch [PREFIX]",
  details: `
Shows what happens in the table, a line for each event. It reads the table again and again: what came and went between two
looks is not seen. LeaseTable({ history }) keeps everything, and leasehold history shows it.

--exec runs a command for each event, one after the other, with LEASEHOLD_EVENT (acquired, released, completed, takenOver,
EXPIRED, stopping, broken, paused, resumed), LEASEHOLD_KEY, LEASEHOLD_OWNER, LEASEHOLD_FENCING_TOKEN, LEASEHOLD_HELD_MS,
LEASEHOLD_REASON and LEASEHOLD_TABLE_NAME. A command that fails does not end the watch.

leasehold watch --ndjson | tee events.ndjson
leasehold watch orders/ --exec 'test "$LEASEHOLD_EVENT" = EXPIRED && notify "$LEASEHOLD_KEY"'`,
  writes: false,
  operands: [0, 1],
  flags: {
    every: duration("how often to look (default 2s)"),
    ...paceFlags,
    exec: text("CMD", "run by the shell for each event"),
    scan: yes("read the table however large it is"),
  },
  async run(call) {
    const { operands, flags, connect, terminal, clock, signal, printer } = call;
    const [prefix] = operands;
    const { client, describeTable, place, tableName } = await connect();
    const mostItems = flags.scan ? Number.POSITIVE_INFINITY : usualMostItems;
    const look = (): Promise<TableSnapshot> =>
      priceOfTable(describeTable, () => readTable(client, { prefix, mostItems, signal }));
    let before: TableSnapshot | undefined;
    const everyMs = paceOf(flags);
    for await (const after of looks(look, { terminal, clock, signal, everyMs })) {
      if (before === undefined && printer.isForPeople) {
        terminal.say(
          `watching ${place}, every ${ageText(everyMs(after))}: ${costText(after.cost)} for each look`,
        );
      }
      for (const event of before === undefined ? [] : tableEvents(before, after)) {
        print(event, call);
        if (flags.exec !== undefined) await runFor(event, flags.exec, tableName, call);
      }
      before = after;
    }
    return exitCodes.done;
  },
});

/** The word for an event: a person has to see an overdue lease. */
function wordOf({ what }: TableEvent): string {
  return what === "overdue" ? "EXPIRED" : what;
}

const styles: Partial<Record<TableEvent["what"], Style>> = {
  overdue: "red",
  broken: "red",
  takenOver: "yellow",
  stopping: "yellow",
  paused: "magenta",
  acquired: "green",
};

const wordWidth = 9;

function print(event: TableEvent, { printer, terminal, global }: Call): void {
  if (!printer.isForPeople) {
    const { what, ...others } = event;
    // One line for each event, in every format: there is no end to wait for.
    if (printer.format === "key") printer.keys([event.key]);
    else printer.line("event", { event: wordOf(event), ...others });
    return;
  }
  const { paint, columns } = terminal;
  const time = timeText(event.at, global.local ? "local" : "utc").slice(11);
  const style = styles[event.what];
  const word = wordOf(event).padEnd(wordWidth);
  const rest = cut(shown(`${event.key}  ${detailOf(event)}`), columns - time.length - word.length - 4);
  terminal.print(`${time}  ${style === undefined ? word : paint(style, word)}  ${rest}`);
}

function detailOf({ what, owner, heldForMs = 0, fencingToken, successor, reason }: TableEvent): string {
  const held = ageText(heldForMs);
  switch (what) {
    case "acquired":
      return `${owner}  fence ${fenceText(fencingToken)}`;
    case "takenOver":
      return successor === undefined ? `from ${owner}` : `${successor} from ${owner}`;
    case "overdue":
      return `${owner}, held ${held}`;
    case "paused":
    case "stopping":
      return `${owner}${reason === undefined ? "" : `: ${JSON.stringify(reason)}`}`;
    default:
      return `held ${held} by ${owner}`;
  }
}

/** Runs a command for an event, and waits for it: events keep their order, and no flood of processes starts. */
async function runFor(
  event: TableEvent,
  exec: string,
  tableName: string,
  { env, terminal }: Call,
): Promise<void> {
  const { key, owner, fencingToken, heldForMs, reason } = event;
  try {
    const child = spawn(exec, {
      shell: true,
      // What it prints is talk: stdout is for events.
      stdio: ["ignore", 2, 2],
      env: {
        ...env,
        LEASEHOLD_EVENT: wordOf(event),
        LEASEHOLD_KEY: key,
        LEASEHOLD_OWNER: owner,
        LEASEHOLD_FENCING_TOKEN: String(fencingToken),
        LEASEHOLD_HELD_MS: String(heldForMs ?? ""),
        LEASEHOLD_REASON: reason ?? "",
        LEASEHOLD_TABLE_NAME: tableName,
      },
    });
    const [code, signal] = await once(child, "close");
    if (code !== 0) terminal.complain(`leasehold: --exec ended with ${code ?? signal} for ${shown(key)}`);
  } catch (error) {
    terminal.complain(`leasehold: --exec failed: ${shown(String(error))}`);
  }
}
