/**
 * What the lease client costs: requests and capacity, latency against bare writes, and renewals together against one
 * by one.
 *
 *     npm run bench [-- --engine=dynoxide]
 */
import { parseArgs } from "node:util";
import { type LocalEngineName, startEngine } from "@leasehold/local";
import { makeTable } from "../test/support/table.ts";
import { benchCycles } from "./cycles.ts";
import { benchRenewals } from "./renewals.ts";
import { heading, note, table } from "./report.ts";
import { benchRequests } from "./requests.ts";

const { values } = parseArgs({ options: { engine: { type: "string" } } });
await using engine = await startEngine(
  values.engine === undefined ? {} : { engine: values.engine as LocalEngineName },
);
const leases = await makeTable(engine);

note(`${engine.version}, Node ${process.version}`);
note("measuring ...");
const requests = await benchRequests(engine, leases);
const cycles = await benchCycles(leases);
const renewals = await benchRenewals(leases);
leases.close();

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
  ["protocol", "requests", "p50 ms", "p99 ms", "ratio of p50", "lowest", "highest round"],
  cycles.map(({ protocol, requests: count, p50, p99, ratio, lowest, highest }) => [
    protocol,
    String(count),
    p50.toFixed(3),
    p99.toFixed(3),
    ratio.toFixed(3),
    lowest.toFixed(3),
    highest.toFixed(3),
  ]),
);
note(`${cycles[0]?.cycles} cycles each, in turns; ratios are to the first line of the same round`);

heading("Renewing 100 leases");
table(
  ["by", "requests", "p50 ms", "p50 CPU ms"],
  renewals.map(({ by, sent, ms, cpuMs }) => [by, sent, ms.toFixed(1), cpuMs.toFixed(1)]),
);
