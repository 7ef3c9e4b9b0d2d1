/** The page's table of names says what the code does with each event, and the page knows every name that is sent. */
import { channel } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { leaseEventTypes } from "@leasehold/client/internal";
import { type LoggedEvent, logLevels } from "@leasehold/client/log";
import { metricNames as cloudWatchNames, dimensionNames, measurementsOf } from "@leasehold/client/metrics";
import { singleFlightChannel } from "@leasehold/client/single-flight";
import {
  attributeNames,
  instrumentLeasehold,
  metricNames,
  outcomes,
  spanNames,
} from "@leasehold/opentelemetry";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { expect, it } from "vitest";
import { sampleEvents } from "../support/sample-events.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/observability.md"), "utf8");
const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
const isLeaseEvent = (
  event: LoggedEvent,
): event is Extract<LoggedEvent, { type: (typeof leaseEventTypes)[number] }> =>
  leaseEventTypes.some((type) => type === event.type);

/** The metrics that one event has been recorded in. */
async function measuredBy(event: LoggedEvent): Promise<string[]> {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  const stop = instrumentLeasehold({ meterProvider: new MeterProvider({ readers: [reader] }) });
  channel(isLeaseEvent(event) ? `leasehold:${event.type}` : singleFlightChannel).publish(event);
  await reader.forceFlush();
  stop();
  const metrics = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  await reader.shutdown();
  return metrics
    .filter(
      ({ descriptor, dataPoints }) => descriptor.name !== metricNames.held || dataPoints[0]?.value === 1,
    )
    .map(({ descriptor }) => descriptor.name);
}

it("the table of names says what becomes of each event", async () => {
  const rows: string[] = [];
  for (const event of Object.values(sampleEvents)) {
    const measurements = isLeaseEvent(event) ? Object.keys(measurementsOf(event)) : [];
    const cells = [
      code([event.type]),
      code([logLevels[event.type]]),
      code(measurements),
      code(await measuredBy(event)),
    ];
    rows.push(`| ${cells.join(" | ")} |`.replaceAll("|  |", "| |").replaceAll("|  |", "| |"));
  }
  const [, table = ""] = page.split("| event |");
  const [, , ...said] = (table.split("\n\n")[0] ?? "").split("\n");
  expect(said).toEqual(rows);
});

it("the page knows every name that is sent, and no other", () => {
  const known = [metricNames, attributeNames, spanNames, cloudWatchNames, dimensionNames].flatMap((names) =>
    Object.values<string>(names),
  );
  const said = new Set([...page.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name));
  expect(known.filter((name) => !said.has(name))).toEqual([]);
  expect(Object.values(outcomes).filter((outcome) => !said.has(outcome))).toEqual([]);
  const sent = [...said].filter((name) => /^leasehold\.[a-z]/.test(name));
  expect(sent.filter((name) => !known.includes(name))).toEqual([]);
});
