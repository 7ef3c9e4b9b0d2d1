// A stream's record as Lambda's event shows it.

import type { _Record as StreamRecord } from "@aws-sdk/client-dynamodb-streams";

/** A value in DynamoDB's wire form, such as `{ "S": "text" }`, with binary as base64. */
export type WireValue = Readonly<Record<string, unknown>>;

/** A record as Lambda hands it to a function. */
export interface StreamEventRecord {
  readonly eventID: string;
  readonly eventName: "INSERT" | "MODIFY" | "REMOVE";
  readonly eventVersion: string;
  readonly eventSource: "aws:dynamodb";
  readonly awsRegion: string;
  readonly dynamodb: {
    /** Seconds since the epoch. */
    readonly ApproximateCreationDateTime: number;
    readonly Keys?: Readonly<Record<string, WireValue>>;
    readonly NewImage?: Readonly<Record<string, WireValue>>;
    readonly OldImage?: Readonly<Record<string, WireValue>>;
    readonly SequenceNumber: string;
    readonly SizeBytes: number;
    readonly StreamViewType: string;
  };
  /** Who deleted the item, where that was ttl. */
  readonly userIdentity?: { readonly type: string; readonly principalId: string };
  readonly eventSourceARN: string;
}

/** Where records pretend to come from. */
export interface StreamSource {
  readonly arn: string;
  readonly region: string;
}

/** What AWS says about an item that ttl removed. */
const timeToLive = { type: "Service", principalId: "dynamodb.amazonaws.com" } as const;

/**
 * Gives a record the form that Lambda gives it, whichever engine it comes from.
 *
 * A removal by ttl differs: DynamoDB Local 3.3 names it UNKNOWN_TO_SDK_VERSION and says nothing of who did it;
 * dynoxide 1.2 sends a REMOVE with an empty identity. A plain delete is a REMOVE without any identity on both.
 */
export function toEventRecord(record: StreamRecord, source: StreamSource): StreamEventRecord {
  const { dynamodb = {}, userIdentity } = record;
  const byTimeToLive = !isKnownName(record.eventName) || userIdentity !== undefined;
  const created = dynamodb.ApproximateCreationDateTime;
  return {
    eventID: record.eventID ?? "",
    eventName: isKnownName(record.eventName) ? record.eventName : "REMOVE",
    eventVersion: record.eventVersion ?? "1.1",
    eventSource: "aws:dynamodb",
    awsRegion: source.region,
    dynamodb: {
      ApproximateCreationDateTime: created === undefined ? 0 : Math.floor(created.getTime() / 1000),
      ...(dynamodb.Keys ? { Keys: wireForm(dynamodb.Keys) } : {}),
      ...(dynamodb.NewImage ? { NewImage: wireForm(dynamodb.NewImage) } : {}),
      ...(dynamodb.OldImage ? { OldImage: wireForm(dynamodb.OldImage) } : {}),
      SequenceNumber: dynamodb.SequenceNumber ?? "",
      SizeBytes: dynamodb.SizeBytes ?? 0,
      StreamViewType: dynamodb.StreamViewType ?? "NEW_AND_OLD_IMAGES",
    },
    ...(byTimeToLive ? { userIdentity: timeToLive } : {}),
    eventSourceARN: source.arn,
  };
}

function isKnownName(name: string | undefined): name is StreamEventRecord["eventName"] {
  return name === "INSERT" || name === "MODIFY" || name === "REMOVE";
}

function wireForm(image: object): Record<string, WireValue> {
  return asJson(image) as Record<string, WireValue>;
}

/** The SDK decodes binary values; an event carries them as base64. */
function asJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(asJson);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asJson(member)]));
}
