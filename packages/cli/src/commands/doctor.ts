// What is wrong with the credentials, the table, permissions, the clock, latency, and what dead holders have left.

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock, LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { isOperational, parsedJson, ServiceClock, serviceTimeOf } from "@leasehold/client/internal";
import { utf8Bytes } from "@leasehold/client/schema";
import aws4 from "aws4";
import { type Call, command } from "../command.ts";
import { CommandError, codeOf, exitCodeOf, exitCodes, messageOf } from "../exit-codes.ts";
import { defined, yes } from "../flags.ts";
import { credentialsFix } from "../sdk.ts";
import { type AskedTable, factsOf, refusalIn, type TableFacts, withTable } from "../table/asked-table.ts";
import {
  broken,
  type Finding,
  notChecked,
  ok,
  reportFindings,
  settingFindings,
  warning,
} from "../table/findings.ts";
import { doctorKey, permissionFindings } from "../table/permissions.ts";
import { ownCommand } from "../table/place.ts";
import { durationText } from "../terminal/text.ts";
import { serviceNow } from "../view/table-snapshot.ts";

/** The service's time by the Date headers of all of a client's answers, refusals too. */
function serviceClockOf(dynamodb: DynamoDBClient, clock: Clock): ServiceClock {
  const service = new ServiceClock(clock, false, () => {});
  dynamodb.middlewareStack.add(
    (next) => async (args) => {
      const sentAt = service.moment();
      const result = await next(args);
      const { headers } = result.response as { readonly headers?: Readonly<Record<string, string>> };
      service.note(serviceTimeOf(headers?.date), sentAt);
      return result;
    },
    // Before answers become errors.
    { step: "deserialize", priority: "low", name: "clockWatch" },
  );
  return service;
}

/** Finds something broken if this machine's clock is certainly off by more than the allowance. */
export function clockFinding(service: Pick<ServiceClock, "ahead">, allowedMs: number): Finding {
  const check = "clock";
  const ahead = service.ahead();
  if (ahead === undefined) return notChecked(check, "the answers have no Date header");
  const { minMs, maxMs } = ahead;
  const aheadMs = (minMs + maxMs) / 2;
  const direction = aheadMs > 0 ? "behind" : "ahead of";
  const text = `about ${durationText(Math.abs(aheadMs))} ${direction} DynamoDB's (allowed ${durationText(allowedMs)})`;
  if (minMs <= allowedMs && -maxMs <= allowedMs) return ok(check, text);
  const fix =
    "turn on time synchronisation (chrony, Amazon Time Sync). No lock depends on it; signatures and logs do";
  return broken(check, text, fix, "RUNBOOK.md#the-clock");
}

/** Returns the ARN of the caller. Rejects if there are no credentials, or if STS refuses them. */
async function callerArn(
  { config }: DynamoDBClient,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<string> {
  const region = await config.region();
  const { accessKeyId, secretAccessKey, sessionToken } = await config.credentials();
  const china = region.startsWith("cn-") ? ".cn" : "";
  const url = new URL(env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.amazonaws.com${china}`);
  const request = {
    host: url.host,
    path: "/",
    method: "POST",
    service: "sts",
    region,
    headers: { "Content-Type": "application/x-www-form-urlencoded", Accept: "application/json" },
    body: "Action=GetCallerIdentity&Version=2011-06-15",
  };
  const credentials = { accessKeyId, secretAccessKey, ...defined({ sessionToken }) };
  const { headers = {} } = aws4.sign(request, credentials);
  const { Host: _, "Content-Length": __, ...sent } = headers as Record<string, string>;
  const answer = await fetch(url, { method: "POST", headers: sent, body: request.body, signal });
  const text = await answer.text();
  // A proxy's page, or XML, is no JSON: then the status is enough.
  const { GetCallerIdentityResponse: said, Error: error } = Object(parsedJson(text)?.value) as Answer;
  const arn = said?.GetCallerIdentityResult?.Arn;
  if (arn !== undefined) return arn;
  const message = error?.Message ?? `STS answered with status ${answer.status}`;
  throw new CommandError(message, exitCodes.denied);
}

interface Answer {
  readonly GetCallerIdentityResponse?: { readonly GetCallerIdentityResult?: { readonly Arn?: string } };
  readonly Error?: { readonly Message?: string };
}

const rounds = 10;
const leaseDurationMs = 10_000;
const slowMs = 200;
const oldMs = 3_600_000;
const largeBytes = 100 * 1024;
/** A larger table is scanned only on request. */
const mostItems = 100_000;

/** Acquires, renews and releases doctor's own key several times. */
async function latencyFinding(client: LeaseClient, clock: Clock, signal: AbortSignal): Promise<Finding> {
  const took: Record<"acquire" | "renew" | "release", number[]> = { acquire: [], renew: [], release: [] };
  const timed = async <T>(what: keyof typeof took, call: () => Promise<T>): Promise<T> => {
    const startedAt = clock.monotonic();
    const result = await call();
    took[what].push(clock.monotonic() - startedAt);
    return result;
  };
  for (let round = 0; round < rounds; round++) {
    signal.throwIfAborted();
    const lease = await timed("acquire", () =>
      client.acquire(doctorKey, { leaseDurationMs, signal, waitMs: leaseDurationMs }),
    );
    await timed("renew", () => lease.renew());
    await timed("release", () => lease.release());
  }
  const medians = Object.entries(took).map(([what, times]) => [what, median(times)] as const);
  const text = `${medians.map(([what, ms]) => `${what} ${Math.round(ms)} ms`).join(", ")} (p50 of ${rounds})`;
  const check = "latency";
  if (medians.every(([, ms]) => ms <= slowMs)) return ok(check, text);
  const fix = "run where the table is; a lease has to last for many times as long as a request";
  return warning(check, text, fix, "RUNBOOK.md#dynamodb-is-slow-or-throttles");
}

function median(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}

/** Reads all leases to find those that no caller wants any more, and large payloads. */
async function leftoverFinding(client: LeaseClient): Promise<Finding> {
  let expired = 0;
  let large = 0;
  for await (const { leases } of new LeaseAdmin(client).listPages()) {
    for (const { expiresAt, data } of leases) {
      if (expiresAt < serviceNow(client) - oldMs) expired += 1;
      if (data !== undefined && utf8Bytes(JSON.stringify(data)) > largeBytes) large += 1;
    }
  }
  const text = `${expired} expired leases older than 1h; ${large} with more than 100 KB of data`;
  const check = "leftovers";
  if (expired === 0 && large === 0) return ok(check, text);
  const fix =
    "leasehold ls --expired lists them: no caller has wanted them since. Large data makes every write dear";
  return warning(check, text, fix);
}

const flags = {
  strict: yes("exit 1 where there are warnings"),
  scan: yes("look through tables of more than 100,000 items too"),
};

type DoctorCall = Call<typeof flags>;

const defaultSkewMs = 1_000;
const identityWithinMs = 5_000;

export const doctor = command({
  usage: "doctor [flags]",
  details: `
Checks credentials, the table's settings, permissions, the clock, latency and what dead holders have left. Exit 0; 2 where
something is broken; 1 with --strict where there are warnings. What could not be looked at is said, and counts as neither.

WRITES a lease of the key ${doctorKey} some times, and releases it. With --read-only it sends reads alone.`,
  writes: false,
  flags,
  async run(call) {
    return await withTable(call, undefined, async (asked) => {
      const service = serviceClockOf(asked.dynamodb, call.clock);
      const who = await identityFinding(call, asked);
      const facts = await factsOf(asked).catch((error: unknown) => tableFailure(error, call));
      if ("check" in facts) return reportFindings(call, [who, facts], call.flags.strict);
      const settings = settingFindings(asked, facts);
      const isLeaseTable = settings.every(({ check, result }) => check !== "key" || result === "ok");
      const findings = isLeaseTable ? await useFindings(call, asked, facts) : [];
      const clock = clockFinding(service, call.global.skew ?? defaultSkewMs);
      return reportFindings(call, [who, ...settings, ...findings, clock], call.flags.strict);
    });
  },
});

/** Reports the owner of the credentials. An engine on this machine accepts any. */
async function identityFinding(
  { env, signal }: DoctorCall,
  { dynamodb, isLocal }: AskedTable,
): Promise<Finding> {
  const check = "credentials";
  if (isLocal && env.AWS_ENDPOINT_URL_STS === undefined) {
    return notChecked(check, "an engine on this machine takes any");
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(identityWithinMs)]);
  try {
    return ok(check, await callerArn(dynamodb, env, limit));
  } catch (error) {
    signal.throwIfAborted();
    // fetch rejects with a TypeError that has a cause where nobody answers.
    const isUnanswered = limit.aborted || (error instanceof TypeError && error.cause !== undefined);
    if (!isUnanswered && !(error instanceof CommandError) && !isOperational(error)) throw error;
    const text = messageOf(error);
    // If STS is not reachable, as in an isolated subnet, the credentials may still be right.
    return isUnanswered
      ? notChecked(check, `STS does not answer (${text})`)
      : broken(check, text, credentialsFix, "errors.md#lease_credentials_missing");
  }
}

/** A table that cannot be described is a finding. A service that does not answer ends the command. */
function tableFailure(error: unknown, { env, signal }: DoctorCall): Finding {
  signal.throwIfAborted();
  const code = exitCodeOf(error);
  if (code === exitCodes.unavailable || code === exitCodes.fault) throw error;
  const text = messageOf(error);
  if (refusalIn(error) === "denied") {
    const fix = "permit dynamodb:DescribeTable, or ask who may";
    return broken("table", text, fix, "errors.md#lease_access_denied");
  }
  // Only a missing table has to be created: in the other cases it may exist.
  if (codeOf(error) === "LEASE_TABLE_NOT_FOUND") {
    const fix = `${ownCommand(env)} table create NAME makes one`;
    return broken("table", text, fix, "errors.md#lease_table_not_found");
  }
  return broken("table", text, credentialsFix, "errors.md#lease_credentials_missing");
}

async function useFindings(
  call: DoctorCall,
  asked: AskedTable,
  { table }: TableFacts,
): Promise<readonly Finding[]> {
  const { global, clock, signal, flags } = call;
  const isReadOnly = global["read-only"] || global["dry-run"];
  const permissions = await permissionFindings(asked, isReadOnly);
  const { client } = await call.connect({ table: asked.tableName });
  const items = table.ItemCount ?? 0;
  // Before the first write, a signal ends it at once.
  const leftovers =
    items > mostItems && !flags.scan
      ? notChecked("leftovers", `a scan of ${items.toLocaleString("en")} items has its price: --scan does it`)
      : await unlessDenied("leftovers", () => leftoverFinding(client));
  const latency = isReadOnly
    ? notChecked("latency", "--read-only acquires nothing")
    : await unlessDenied("latency", () => latencyFinding(client, clock, signal));
  return [...permissions, latency, leftovers];
}

async function unlessDenied(check: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    if (exitCodeOf(error) === exitCodes.denied) {
      return notChecked(check, "it is denied to these credentials");
    }
    if (exitCodeOf(error) === exitCodes.held) {
      return notChecked(check, `another doctor holds the key ${doctorKey}`);
    }
    throw error;
  }
}
