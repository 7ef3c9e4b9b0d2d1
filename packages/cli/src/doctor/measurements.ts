// Doctor's measurements on the table itself: how long a lock takes, and the leftovers of dead holders.

import type { Clock, LeaseClient } from "@leasehold/client";
import { LeaseAdmin } from "@leasehold/client/admin";
import { utf8Bytes } from "@leasehold/client/schema";
import { docsAddress } from "../docs.ts";
import type { Finding } from "../table/findings.ts";
import { serviceNow } from "../view/service-time.ts";
import { doctorKey } from "./permissions.ts";

const rounds = 10;
const leaseDurationMs = 10_000;
const slowMs = 200;
const oldMs = 3_600_000;
const largeBytes = 100 * 1024;
/** A larger table is scanned only on request. */
export const mostItems = 100_000;

/** Acquires, renews and releases doctor's own key several times. */
export async function latencyFinding(
  client: LeaseClient,
  clock: Clock,
  signal: AbortSignal,
): Promise<Finding> {
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
  if (medians.every(([, ms]) => ms <= slowMs)) return { check, result: "ok", text };
  const fix = "run where the table is; a lease has to last for many times as long as a request";
  return {
    check,
    result: "warning",
    text,
    fix,
    docs: docsAddress("RUNBOOK.md#dynamodb-is-slow-or-throttles"),
  };
}

function median(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}

/** Reads all leases to find those that no caller wants any more, and large payloads. */
export async function leftoverFinding(client: LeaseClient, signal: AbortSignal): Promise<Finding> {
  let expired = 0;
  let large = 0;
  for await (const { leases } of new LeaseAdmin(client).listPages()) {
    signal.throwIfAborted();
    for (const { expiresAt, data } of leases) {
      if (expiresAt < serviceNow(client) - oldMs) expired += 1;
      if (data !== undefined && utf8Bytes(JSON.stringify(data)) > largeBytes) large += 1;
    }
  }
  const text = `${expired} expired leases older than 1h; ${large} with more than 100 KB of data`;
  const check = "leftovers";
  if (expired === 0 && large === 0) return { check, result: "ok", text };
  const fix =
    "leasehold ls --expired lists them: no caller has wanted them since. Large data makes every write dear";
  return { check, result: "warning", text, fix };
}
