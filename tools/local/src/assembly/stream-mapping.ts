// Reads AWS::Lambda::EventSourceMapping.

import type { Properties } from "./properties.ts";
import type { JsonObject, ResourceName, StreamMappingSpec, TableSpec } from "./types.ts";

const defaultBatchSize = 100;

/** Reads AWS::Lambda::EventSourceMapping; its source must be the stream of one of the tables. */
export function streamMappingSpec(
  name: ResourceName,
  properties: Properties,
  tables: readonly TableSpec[],
): StreamMappingSpec {
  const streamArn = properties.text("EventSourceArn");
  const table = tables.find((candidate) => candidate.streamArn === streamArn);
  if (table === undefined) {
    const text = `only the stream of a table of this assembly can feed a function here, not ${streamArn}`;
    return properties.unsupported(text);
  }
  const retries = properties.optionalNumber("MaximumRetryAttempts");
  return {
    ...name,
    streamArn,
    tableName: table.name,
    functionName: properties.text("FunctionName"),
    enabled: properties.flag("Enabled", true),
    batchSize: properties.optionalNumber("BatchSize") ?? defaultBatchSize,
    batchingWindowMs: (properties.optionalNumber("MaximumBatchingWindowInSeconds") ?? 0) * 1000,
    startingPosition: startingPosition(properties),
    filters: properties
      .object("FilterCriteria")
      .objects("Filters")
      .map((filter) => pattern(filter)),
    // -1 stands for "until the record is gone".
    retries: retries === undefined || retries < 0 ? undefined : retries,
    reportsItemFailures: properties.list("FunctionResponseTypes").includes("ReportBatchItemFailures"),
    onFailureArn: properties.onFailureQueue(),
  };
}

function startingPosition(properties: Properties): StreamMappingSpec["startingPosition"] {
  const position = properties.text("StartingPosition");
  if (position === "TRIM_HORIZON" || position === "LATEST") return position;
  return properties.unsupported(`a table's stream cannot be read from ${position}`);
}

function pattern(filter: Properties): JsonObject {
  const text = filter.text("Pattern");
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as JsonObject;
  } catch {
    // Ignored: the same complaint as for JSON that is not an object.
  }
  return filter.unsupported("the pattern of a filter must be a JSON object");
}
