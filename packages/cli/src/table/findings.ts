// The findings on a table's settings, and their display. Nothing is sent here: the settings have been read already. A
// check that was not possible is reported, and never shown as good.

import { attributeNames } from "@leasehold/client/schema";
import type { Call } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Paint, Style } from "../terminal/table.ts";
import { counted, docsAddress, shown } from "../terminal/text.ts";
import type { AskedTable, Learnt, TableFacts } from "./asked-table.ts";
import { hasTableTag, tableTag } from "./place.ts";

export interface Finding {
  readonly check: string;
  readonly result: "ok" | "warning" | "error" | "not checked";
  /** The finding; for "not checked", the reason. */
  readonly text: string;
  readonly fix?: string;
  /** The page of the documentation. */
  readonly docs?: string;
}

/** A check that has found nothing wrong. */
export function ok(check: string, text: string): Finding {
  return { check, result: "ok", text };
}

/** A check that was not made, and why. */
export function notChecked(check: string, text: string): Finding {
  return { check, result: "not checked", text };
}

/** A check that has found what may do harm: what to do, and a page of the documentation. */
export function warning(check: string, text: string, fix: string, page?: string): Finding {
  return { check, result: "warning", text, fix, ...(page === undefined ? {} : { docs: docsAddress(page) }) };
}

/** A check that has found what does not work: what to do, and a page of the documentation. */
export function broken(check: string, text: string, fix: string, page?: string): Finding {
  return { ...warning(check, text, fix, page), result: "error" };
}

const signs: Readonly<Record<Finding["result"], readonly [sign: string, style: Style]>> = {
  ok: ["✓", "green"],
  warning: ["!", "yellow"],
  error: ["✗", "red"],
  "not checked": ["?", "dim"],
};

/** A line for each finding, and further lines for what to do. */
export function findingLines(findings: readonly Finding[], paint: Paint): string[] {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = " ".repeat(width + 4);
  return findings.flatMap(({ check, result, text, fix, docs }) => {
    const [sign, style] = signs[result];
    const said = result === "not checked" ? `not checked, because ${shown(text)}` : shown(text);
    return [
      `${paint(style, sign)} ${check.padEnd(width)}  ${said}`,
      ...(fix === undefined ? [] : [`${indent}fix: ${shown(fix)}`]),
      ...(docs === undefined ? [] : [`${indent}see ${docs}`]),
    ];
  });
}

/** Prints findings, and returns the exit code: 2 if something is broken, 1 with `isStrict` if there are warnings. */
export function reportFindings(
  { printer, terminal }: Call,
  findings: readonly Finding[],
  isStrict: boolean,
): number {
  const count = (wanted: Finding["result"]): number =>
    findings.filter(({ result }) => result === wanted).length;
  const [errors, warnings, unchecked] = [count("error"), count("warning"), count("not checked")];
  const exitCode =
    errors > 0 ? exitCodes.broken : isStrict && warnings > 0 ? exitCodes.nothing : exitCodes.done;
  printer.document("findings", { findings, exitCode }, () => findingLines(findings, terminal.paint));
  const left = unchecked > 0 ? `, ${unchecked} not checked` : "";
  terminal.say(`${counted(errors, "error")}, ${counted(warnings, "warning")}${left}. exit ${exitCode}`);
  return exitCode;
}

const { partitionKey, sortKey, timeToLive } = attributeNames;

/** Reads the settings of the table that a call names, or of the table of this name, and checks them. Loads the SDK. */
export async function checkedSettings(call: Call, named?: string): Promise<readonly Finding[]> {
  const { factsOf, withTable } = await import("./asked-table.ts");
  return await withTable(call, named, async (asked) => settingFindings(asked, await factsOf(asked)));
}

/** Checks the settings of a table: everything that `table create` sets, and settings that no lock table should have. */
export function settingFindings(asked: AskedTable, facts: TableFacts): readonly Finding[] {
  return [
    tableFinding(facts, asked),
    keyFinding(facts),
    ttlFinding(facts),
    deletionFinding(facts, asked),
    recoveryFinding(facts),
    replicaFinding(facts),
    tagFinding(facts),
  ];
}

function tableFinding({ table }: TableFacts, { tableName, region }: AskedTable): Finding {
  const { TableStatus = "of unknown status", BillingModeSummary } = table;
  const isOnDemand = BillingModeSummary?.BillingMode === "PAY_PER_REQUEST";
  const text = `${tableName} (${region}), ${TableStatus}, ${isOnDemand ? "on demand" : "provisioned capacity"}`;
  const check = "table";
  if (TableStatus !== "ACTIVE" && TableStatus !== "UPDATING") {
    return broken(check, text, "wait until it is ACTIVE; leasehold table show tells it");
  }
  if (isOnDemand) return ok(check, text);
  const fix =
    "on demand, or enough write units for a burst of renewals: a throttled renewal can lose a lease";
  return warning(check, text, fix, "limits.md#throughput");
}

/** The table's key as text: `pk (S), sk (S)`. */
export function keyText({ table }: TableFacts): string {
  const typeOf = (name: string | undefined): string | undefined =>
    table.AttributeDefinitions?.find(({ AttributeName }) => AttributeName === name)?.AttributeType;
  return (table.KeySchema ?? [])
    .map(({ AttributeName }) => `${AttributeName} (${typeOf(AttributeName)})`)
    .join(", ");
}

function keyFinding(facts: TableFacts): Finding {
  const text = keyText(facts);
  const wanted = `${partitionKey} (S), ${sortKey} (S)`;
  if (text === wanted) return ok("key", text);
  const fix = `a lease table's key is ${wanted}: name another table, or make one with leasehold table create NAME`;
  return broken("key", text, fix, "table.md");
}

function ttlFinding({ table, ttl }: TableFacts): Finding {
  const check = "ttl";
  if (table.MultiRegionConsistency === "STRONG")
    return ok(check, "none: a table with strong consistency cannot have it");
  if ("unknown" in ttl) return notChecked(check, ttl.unknown);
  if (ttl.value === timeToLive) return ok(check, `on, on the attribute "${timeToLive}"`);
  if (ttl.value === undefined) {
    const text = "off: what nobody needs any more is never removed, and listing reads it all";
    return broken(check, text, "leasehold table set --ttl", "RUNBOOK.md#ttl");
  }
  const text = `on, but on the attribute "${ttl.value}": items would never be removed`;
  const fix = `leasehold table set --ttl turns it off there; an hour later, again, turns it on for "${timeToLive}"`;
  return broken(check, text, fix, "RUNBOOK.md#ttl");
}

function deletionFinding({ table }: TableFacts, { isLocal }: AskedTable): Finding {
  const check = "deletion";
  if (isLocal) return notChecked(check, "this is an engine on this machine");
  if (table.DeletionProtectionEnabled === true) return ok(check, "protected");
  return warning(check, "deletion protection is off", "leasehold table set --deletion-protection");
}

function recoveryFinding({ pointInTimeRecovery }: TableFacts): Finding {
  const check = "recovery";
  const found = pointInTimeRecovery as Learnt<boolean>;
  if ("unknown" in found) return notChecked(check, found.unknown);
  if (found.value) return ok(check, "point-in-time recovery is on");
  const text = "point-in-time recovery is off. Mind that a restored table brings old leases back";
  return warning(check, text, "leasehold table set --pitr", "RUNBOOK.md#restore");
}

function replicaFinding({ table }: TableFacts): Finding {
  const { Replicas = [], MultiRegionConsistency } = table;
  const check = "replicas";
  if (Replicas.length === 0) return ok(check, "none: one region");
  const regions = Replicas.map(({ RegionName }) => RegionName).join(", ");
  if (MultiRegionConsistency === "STRONG") {
    return ok(check, `${regions}, strongly consistent`);
  }
  const text = `${regions}: eventually consistent. Two holders are possible if two regions write the same key`;
  return warning(check, text, "use each key in one region only", "limits.md#global");
}

function tagFinding({ tags }: TableFacts): Finding {
  const check = "tag";
  if ("unknown" in tags) return notChecked(check, tags.unknown);
  const name = `${tableTag.Key}=${tableTag.Value}`;
  const text = hasTableTag(tags.value)
    ? `${name}: commands find the table without --table`
    : `no tag ${name}: commands need --table (leasehold table set --tag ${name} changes it)`;
  return ok(check, text);
}
