import { type Call, command } from "../command.ts";
import { ownCommand } from "../connection.ts";
import { docsAddress } from "../docs.ts";
import { ClockWatch } from "../doctor/clock-watch.ts";
import { callerArn } from "../doctor/identity.ts";
import { latencyFinding, leftoverFinding, mostItems } from "../doctor/measurements.ts";
import { doctorKey, permissionFinding } from "../doctor/permissions.ts";
import { exitCodeOf, exitCodes, messageOf } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { credentialsFix } from "../sdk.ts";
import { type AskedTable, askedTable, factsOf, refusalIn, type TableFacts } from "../table/asked-table.ts";
import { type Finding, reportFindings } from "../table/findings.ts";
import { settingFindings } from "../table/table-checks.ts";

const flags = {
  strict: yes("exit 1 where there are warnings"),
  scan: yes("look through tables of more than 100,000 items too"),
};

type DoctorCall = Call<typeof flags>;

const defaultSkewMs = 1_000;
const identityWithinMs = 5_000;

export default command({
  usage: "doctor [flags]",
  details: `
Checks credentials, the table's settings, permissions, the clock, latency and what dead holders have left. Exit 0; 2 where
something is broken; 1 with --strict where there are warnings. What could not be looked at is said, and counts as neither.

WRITES a lease of the key ${doctorKey} some times, and releases it. With --read-only it sends reads alone.`,
  writes: false,
  flags,
  async run(call) {
    const asked = await askedTable(call);
    const watch = new ClockWatch(call.clock);
    watch.watch(asked.dynamodb);
    try {
      const who = await identityFinding(call, asked);
      const facts = await factsOf(asked).catch((error: unknown) => tableFailure(error, call));
      if ("check" in facts) return reportFindings(call, [who, facts], call.flags.strict);
      const settings = settingFindings(asked, facts);
      const isLeaseTable = settings.every(({ check, result }) => check !== "key" || result === "ok");
      const findings = isLeaseTable ? await useFindings(call, asked, facts) : [];
      const clock = watch.finding(call.global.skew ?? defaultSkewMs);
      return reportFindings(call, [who, ...settings, ...findings, clock], call.flags.strict);
    } finally {
      asked.close();
    }
  },
});

/** Reports the owner of the credentials. An engine on this machine accepts any. */
async function identityFinding(
  { env, signal }: DoctorCall,
  { dynamodb, isLocal }: AskedTable,
): Promise<Finding> {
  const check = "credentials";
  if (isLocal && env.AWS_ENDPOINT_URL_STS === undefined) {
    return { check, result: "not checked", text: "an engine on this machine takes any" };
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(identityWithinMs)]);
  try {
    return { check, result: "ok", text: await callerArn(dynamodb, env, limit) };
  } catch (error) {
    signal.throwIfAborted();
    const text = messageOf(error);
    const fix = credentialsFix;
    const docs = docsAddress("RUNBOOK.md#region-and-credentials");
    // If STS is not reachable, as in an isolated subnet, the credentials may still be right.
    const isCredentials = Object(error).name !== "TypeError" && !limit.aborted;
    return isCredentials
      ? { check, result: "error", text, fix, docs }
      : { check, result: "not checked", text: `STS does not answer (${text})` };
  }
}

/** A table that cannot be described is a finding. A service that does not answer ends the command. */
function tableFailure(error: unknown, { env }: DoctorCall): Finding {
  const code = exitCodeOf(error);
  if (code === exitCodes.unavailable || code === exitCodes.fault) throw error;
  const text = messageOf(error);
  if (refusalIn(error) === "denied") {
    const fix = "permit dynamodb:DescribeTable, or ask who may";
    return {
      check: "table",
      result: "error",
      text,
      fix,
      docs: docsAddress("RUNBOOK.md#access-denied"),
    };
  }
  // Only a missing table has to be created: in the other cases it may exist.
  if (Object(error).code === "LEASE_TABLE_NOT_FOUND") {
    const fix = `${ownCommand(env)} table create NAME makes one`;
    const docs = docsAddress("RUNBOOK.md#the-table-is-not-found");
    return { check: "table", result: "error", text, fix, docs };
  }
  const docs = docsAddress("RUNBOOK.md#region-and-credentials");
  return { check: "table", result: "error", text, fix: credentialsFix, docs };
}

/** The findings from using the table. */
async function useFindings(
  call: DoctorCall,
  asked: AskedTable,
  { table }: TableFacts,
): Promise<readonly Finding[]> {
  const { global, clock, signal, flags } = call;
  const isReadOnly = global["read-only"] || global["dry-run"];
  const permissions = await permissionFinding(asked, isReadOnly);
  const { client } = await call.connect(asked.tableName);
  const items = table.ItemCount ?? 0;
  const latency = isReadOnly
    ? { check: "latency", result: "not checked" as const, text: "--read-only acquires nothing" }
    : await unlessDenied("latency", () => latencyFinding(client, clock, signal));
  const leftovers =
    items > mostItems && !flags.scan
      ? {
          check: "leftovers",
          result: "not checked" as const,
          text: `a scan of ${items.toLocaleString("en")} items has its price: --scan does it`,
        }
      : await unlessDenied("leftovers", () => leftoverFinding(client, signal));
  return [...permissions, latency, leftovers];
}

async function unlessDenied(check: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    if (exitCodeOf(error) === exitCodes.denied) {
      return { check, result: "not checked", text: "it is denied to these credentials" };
    }
    if (exitCodeOf(error) === exitCodes.held) {
      return { check, result: "not checked", text: `another doctor holds the key ${doctorKey}` };
    }
    throw error;
  }
}
