import type { Properties } from "./properties.ts";
import type { IndexSpec, KeyPart, ResourceName, TableSpec } from "./types.ts";

/** Reads AWS::DynamoDB::Table and AWS::DynamoDB::GlobalTable, which differ in nothing that matters to one region. */
export function tableSpec(name: ResourceName, properties: Properties, streamArn: string): TableSpec {
  const stream = properties.object("StreamSpecification").optionalText("StreamViewType");
  const timeToLive = properties.object("TimeToLiveSpecification");
  return {
    ...name,
    attributes: properties.objects("AttributeDefinitions").map((attribute) => ({
      name: attribute.text("AttributeName"),
      type: attribute.text("AttributeType") as "S" | "N" | "B",
    })),
    key: keyOf(properties),
    globalIndexes: properties.objects("GlobalSecondaryIndexes").map(indexOf),
    localIndexes: properties.objects("LocalSecondaryIndexes").map(indexOf),
    streamViewType: stream,
    streamArn: stream === undefined ? undefined : streamArn,
    timeToLiveAttribute: timeToLive.flag("Enabled", false) ? timeToLive.text("AttributeName") : undefined,
  };
}

function indexOf(index: Properties): IndexSpec {
  const projection = index.object("Projection");
  return {
    name: index.text("IndexName"),
    key: keyOf(index),
    projection: (projection.optionalText("ProjectionType") ?? "ALL") as IndexSpec["projection"],
    nonKeyAttributes: projection.list("NonKeyAttributes").map(String),
  };
}

function keyOf(properties: Properties): KeyPart[] {
  return properties.objects("KeySchema").map((part) => ({
    name: part.text("AttributeName"),
    type: part.text("KeyType") as KeyPart["type"],
  }));
}
