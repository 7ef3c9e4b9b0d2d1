/**
 * What the lease client costs: requests and capacity, latency against bare writes, renewals together against one
 * by one, the other primitives, a keeper's beat, and what it adds to a function's bundle and to its start.
 */
import type { Engine } from "@leasehold/engine";
import { makeTable } from "../../test/support/table.ts";
import { type Bundle, bundle, partsOf } from "./bundles.ts";
import { benchCycles } from "./cycles.ts";
import { benchInvocation } from "./invocation.ts";
import { benchKeeper } from "./keeper.ts";
import { benchManyLeases } from "./many-leases.ts";
import { benchPrimitives, reportPrimitives } from "./primitives.ts";
import { benchRenewals } from "./renewals.ts";
import { against, heading, note, table } from "./report.ts";
import { benchRequests } from "./requests.ts";
import { benchStarts } from "./starts.ts";
import { benchWaiting, reportWaiting } from "./waiting/measurements.ts";

/** Measures everything, and prints it. */
export async function benchOwnCosts(engine: Engine): Promise<void> {
  const leases = await makeTable(engine);

  note(`${engine.version}, Node ${process.version}`);
  note("measuring ...");
  const requests = await benchRequests(engine, leases);
  const cycles = await benchCycles(leases, engine);
  const renewals = await benchRenewals(leases);
  const manyLeases = await benchManyLeases();
  const primitives = await benchPrimitives(engine, leases);
  const waiting = await benchWaiting();
  const invocation = await benchInvocation(engine, leases);
  const keeper = await benchKeeper();
  leases.close();
  const [bare, bareMiddy, client, plain, middleware, lightClient, lightPlain, lightMiddleware] =
    await Promise.all([
      bundle("bare"),
      bundle("bare-middy"),
      bundle("client"),
      bundle("leased"),
      bundle("lease-lock"),
      bundle("client-light"),
      bundle("leased-light"),
      bundle("lease-lock-light"),
    ]);
  const compared: readonly { readonly bundle: Bundle; readonly baseline: Bundle }[] = [
    { bundle: bare, baseline: bare },
    { bundle: client, baseline: bare },
    { bundle: plain, baseline: bare },
    { bundle: bareMiddy, baseline: bareMiddy },
    { bundle: middleware, baseline: bareMiddy },
    { bundle: lightClient, baseline: bare },
    { bundle: lightPlain, baseline: bare },
    { bundle: lightMiddleware, baseline: bareMiddy },
  ];
  const starts = await benchStarts(compared);

  heading("Requests and capacity of each operation");
  table(
    ["operation", "requests", "", "capacity"],
    requests.map(({ operation, sent, refused, capacity }) => [
      operation,
      String(sent.length),
      sent.join(", "),
      refused === 0 ? capacity : `${capacity} *`,
    ]),
  );
  note("* of which one refused write, whose answer does not tell; DynamoDB bills it like one that succeeds");

  heading("One cycle: take the lock and give it back");
  table(
    [
      "protocol",
      "requests",
      "p50 ms",
      "p99 ms",
      "ratio of p50",
      "lowest",
      "highest round",
      "CPU µs",
      "ratio of CPU",
    ],
    cycles.map(({ name, requests: count, p50, p99, ratio, lowest, highest, cpuUs, cpuRatio }) => [
      name,
      String(count),
      p50.toFixed(3),
      p99.toFixed(3),
      ratio.toFixed(3),
      lowest.toFixed(3),
      highest.toFixed(3),
      cpuUs.toFixed(0),
      cpuRatio.toFixed(3),
    ]),
  );
  note(`${cycles[0]?.cycles} cycles each, in turns; ratios are to the first line of the same round`);

  heading("Renewing 100 leases");
  table(
    ["by", "requests", "p50 ms", "p50 CPU ms"],
    renewals.map(({ by, sent, ms, cpuMs }) => [by, sent, ms.toFixed(1), cpuMs.toFixed(1)]),
  );

  heading("Renewing very many leases, without the requests");
  table(
    ["leases", "CPU µs of a renewal", "goal", "bytes each", "goal"],
    manyLeases.map(({ leases: count, microseconds, bytes }) => [
      String(count),
      microseconds.toFixed(1),
      against("at most 40", microseconds <= 40),
      bytes.toFixed(0),
      count < 10_000 ? "" : against("at most 2048", bytes <= 2048),
    ]),
  );

  reportPrimitives(primitives);
  reportWaiting(waiting);

  heading("An invocation whose lease is sized from its remaining time");
  table(
    ["requests", "", "goal"],
    [[String(invocation.length), invocation.join(", "), against("2", invocation.length === 2)]],
  );

  heading("One beat of a keeper");
  table(
    ["it guards", "transitions", "writes", "descriptions", "other requests", "goal"],
    keeper.map(({ guards, transitions, writes, descriptions, rest }) => [
      guards,
      String(transitions),
      String(writes),
      String(descriptions),
      String(rest),
      against(
        "at most 3, 1 write and 1/5 description",
        transitions <= 3 && writes <= 1 && descriptions <= 0.2 && rest === 0,
      ),
    ]),
  );

  heading("A function's bundle, minified");
  table(
    ["handler", "KB", "gzip KB", "added KB", "gzip KB", "goal"],
    compared.map(({ bundle: { name, bytes, gzipBytes }, baseline }) => [
      name,
      kilobytes(bytes),
      kilobytes(gzipBytes),
      kilobytes(bytes - baseline.bytes),
      kilobytes(gzipBytes - baseline.gzipBytes),
      name === "lease-lock"
        ? against("under 20 added", bytes - baseline.bytes < 20_000)
        : name === "client-light"
          ? against("at most 60", bytes <= 60_000)
          : "",
    ]),
  );
  note(
    "bare and bare-middy hold the commands that the client sends, and no lock; each other is compared to its like",
  );

  for (const each of [middleware, lightClient]) {
    heading(`Of which, in ${each.name}`);
    table(
      ["part", "KB"],
      partsOf(each).map(({ part, bytes }) => [part, kilobytes(bytes)]),
    );
  }

  heading("Starting a function's process, until its handler can be called");
  table(
    ["handler", "p50 ms", "p25", "p75", "CPU ms", "of which import", "ratio of p50", "of import", "goal"],
    starts.map(({ name, p50, p25, p75, cpuP50, importCpuP50, ratio, importCpuRatio, isBaseline }) => [
      name,
      p50.toFixed(1),
      p25.toFixed(1),
      p75.toFixed(1),
      cpuP50.toFixed(1),
      importCpuP50.toFixed(1),
      ratio.toFixed(3),
      importCpuRatio.toFixed(3),
      startGoal(name, isBaseline, ratio, importCpuRatio),
    ]),
  );
  note(`${starts[0]?.starts} starts each, in turns; without a request`);
}

function startGoal(name: string, isBaseline: boolean, ratio: number, importCpuRatio: number): string {
  if (isBaseline) return "";
  return name.endsWith("-light")
    ? against("import at most 0.4", importCpuRatio <= 0.4)
    : against("at most 1.1", ratio <= 1.1);
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}
