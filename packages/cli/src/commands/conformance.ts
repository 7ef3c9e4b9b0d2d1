import { LeaseError } from "@leasehold/client";
import {
  type ConformanceReport,
  type ConformanceResult,
  conformanceChecks,
  runConformance,
} from "@leasehold/client/conformance";
import { coreOf, everyItem, scan } from "@leasehold/client/internal";
import { attributeNames } from "@leasehold/client/schema";
import { agreed, type Call, command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { CommandError, codeOf, exitCodeOf, exitCodes, messageOf } from "../exit-codes.ts";
import { text, usually } from "../flags.ts";
import { checkedSettings, type Finding, findingLines, notChecked, ok } from "../table/findings.ts";
import { counted, durationText, shown } from "../terminal/text.ts";
import { dollarsText, prices } from "../view/read-cost.ts";

const usualPrefix = "leasehold-conformance/";
const flags = {
  prefix: usually(text("TEXT", `what its keys begin with (default "${usualPrefix}")`), usualPrefix),
};

type ConformanceCall = Call<typeof flags>;

const groupWidth = Math.max(...conformanceChecks.map(({ group }) => group.length));
/** Only --json shows longer reasons in full. */
const longestReason = 300;

export const conformance = command({
  usage: "conformance [flags]",
  details: `
Looks whether a table does what leases need: each form of a condition, refusals with their item, transactions, order and
pages of reads, limits, writes at the same time, how calls end, and locks. Says what it measured and what it cost. Exit 0
where all of it holds, 2 where something does not.

WRITES about 1,000 items under keys of its own, and removes them. It asks first where the table has other items. On
DynamoDB it costs less than a cent.`,
  writes: true,
  flags,
  async run(call) {
    const connection = await call.connect();
    const { prefix } = call.flags;
    await askFirst(call, connection, prefix);
    if (call.printer.isForPeople) call.terminal.print(connection.place);
    const settings = await settingResults(call, connection);
    for (const result of settings) printResult(call, result);
    const report = await runOn(call, connection, prefix);
    const results = [...settings, ...report.results];
    const exitCode = results.some(({ outcome }) => outcome === "failed") ? exitCodes.broken : exitCodes.done;
    const { measured, cost, leftBehind } = report;
    const record = { place: connection.place, results, measured, cost, leftBehind, exitCode };
    call.printer.document("conformance", record, () => figureLines(report));
    const count = (outcome: Result["outcome"]): number =>
      results.filter((result) => result.outcome === outcome).length;
    if (leftBehind.length > 0) {
      call.terminal.say(`${leftBehind.length} items under "${shown(prefix)}" could not be removed`);
    }
    call.terminal.say(
      `${count("ok")} ok, ${count("failed")} failed, ${count("skipped")} skipped. exit ${exitCode}`,
    );
    return exitCode;
  },
});

/** The result of a check of the store, or of the table's settings. */
type Result = Omit<ConformanceResult, "group" | "tookMs"> & { readonly group: string };

/** Asks if the table has items that do not belong to these checks. Throws a CommandError (1) for a no. */
async function askFirst(call: ConformanceCall, connection: Connection, prefix: string): Promise<void> {
  if (!(await hasOthers(connection, prefix))) return;
  const question = `${connection.place} has items of others. Write about 1,000 items under "${shown(prefix)}", and remove them?`;
  await agreed(call, { question });
}

/** Whether a page of the table shows other items. An unreadable table may have some. */
async function hasOthers({ client }: Connection, prefix: string): Promise<boolean> {
  try {
    const { items, next } = await scan(coreOf(client), everyItem());
    const others = items.filter(({ [attributeNames.partitionKey]: key }) => !String(key).startsWith(prefix));
    return others.length > 0 || next !== undefined;
  } catch (error) {
    if (exitCodeOf(error) === exitCodes.denied) return true;
    throw withAdvice(error, prefix);
  }
}

/** Key and ttl of the table, if it has settings that these credentials may read. */
async function settingResults(
  call: ConformanceCall,
  { store, tableName }: Connection,
): Promise<readonly Result[]> {
  if (store.isLocal || call.global["dry-run"]) return [];
  try {
    const findings = await checkedSettings(call, tableName);
    return findings.filter(({ check }) => check === "key" || check === "ttl").map(resultOf);
  } catch (error) {
    call.signal.throwIfAborted();
    if (!(error instanceof LeaseError)) throw error;
    return [{ group: "table", name: "the table's settings", outcome: "skipped", reason: messageOf(error) }];
  }
}

function resultOf({ check, result, text: said }: Finding): Result {
  const name = `the table's ${check}`;
  if (result === "ok") return { group: "table", name: `${name}: ${said}`, outcome: "ok" };
  return { group: "table", name, outcome: result === "not checked" ? "skipped" : "failed", reason: said };
}

async function runOn(
  call: ConformanceCall,
  { store }: Connection,
  keyPrefix: string,
): Promise<ConformanceReport> {
  try {
    const onResult = (result: Result): void => printResult(call, result);
    return await runConformance({ store, keyPrefix, signal: call.signal, onResult });
  } catch (error) {
    throw withAdvice(error, keyPrefix);
  }
}

/** The same error, with what a user of this command can do about it. */
function withAdvice(error: unknown, prefix: string): unknown {
  const code = codeOf(error);
  const advice =
    code === "LEASE_ACCESS_DENIED"
      ? `the checks write and read under "${shown(prefix)}": leasehold table policy primitives --prefix ${shown(prefix)} prints the policy`
      : code === "LEASE_TABLE_NOT_FOUND"
        ? "leasehold table create NAME makes one; leasehold dev makes one on this machine"
        : undefined;
  if (advice === undefined) return error;
  return new CommandError(`${messageOf(error)}. ${advice}`, exitCodeOf(error), { cause: error });
}

function printResult({ printer, terminal }: ConformanceCall, result: Result): void {
  if (!printer.isForPeople) return;
  for (const line of findingLines([findingOf(result)], terminal.paint)) terminal.print(line.trimEnd());
}

function findingOf({ group, name, outcome, reason = "" }: Result): Finding {
  const check = group.padEnd(groupWidth);
  if (outcome === "ok") return ok(check, name);
  const said = reason.replaceAll(/\s+/g, " ");
  const why = said.length > longestReason ? `${said.slice(0, longestReason)}…` : said;
  return outcome === "failed"
    ? { check, result: "error", text: `NOT: ${name} (${why})` }
    : notChecked(check, `${why} (${name})`);
}

function figureLines({ measured, cost }: ConformanceReport): readonly string[] {
  const units = `${cost.writeUnits.toLocaleString("en-US")} write units and ${Math.ceil(cost.readUnits).toLocaleString("en-US")} read units`;
  const dollars = dollarsText(cost.writeUnits * prices.writeUnit + cost.readUnits * prices.readUnit);
  const costLine = `cost     ${cost.calls.toLocaleString("en-US")} calls, about ${units} (${dollars} on demand)`;
  if (measured === undefined) return [costLine];
  const { writeMs, writesPerSecond, largestBatch, clockOffset } = measured;
  const ms = (value: number): string =>
    `${value.toLocaleString("en-US", { maximumSignificantDigits: 2 })} ms`;
  const clock =
    clockOffset === undefined
      ? "the answers tell no time"
      : `the service's is ${durationText(clockOffset.leastMs)} to ${durationText(clockOffset.mostMs)} ahead of this machine's`;
  return [
    `latency  one write ${ms(writeMs.p50)} (p50), ${ms(writeMs.p99)} (p99) of ${writeMs.of}`,
    `one item ${Math.round(writesPerSecond).toLocaleString("en-US")} writes a second, by 10 writers`,
    `batch    ${counted(largestBatch, "write")} in one request at most`,
    `clock    ${clock}`,
    costLine,
  ];
}
