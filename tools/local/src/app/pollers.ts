// Connects the tables' streams with the functions that read them.

import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import type { EngineClientConfig } from "@leasehold/engine";
import type { AppSpec, StreamMappingSpec } from "../assembly/types.ts";
import type { LambdaRuntime } from "../lambda/runtime.ts";
import type { Queues } from "../services/queues.ts";
import type { FailedBatch } from "../streams/delivery.ts";
import { failureMessage } from "../streams/failure.ts";
import { StreamPoller } from "../streams/poller.ts";
import type { LocalAppListener } from "./events.ts";

/** What the streams are read with. */
export interface PollersSetup {
  readonly spec: AppSpec;
  readonly clientConfig: EngineClientConfig;
  readonly region: string;
  /** The engine's stream ARNs by table name. */
  readonly engineStreams: ReadonlyMap<string, string>;
  readonly lambda: LambdaRuntime;
  readonly queues: Queues;
  readonly retryDelayMs: number | undefined;
  readonly publish: LocalAppListener;
}

/** Begins to feed functions from the tables' streams; resolves when no write can be missed any more. */
export async function startPollers(setup: PollersSetup, cleanups: AsyncDisposableStack): Promise<void> {
  const mappings = setup.spec.streamMappings.filter(({ enabled }) => enabled);
  if (mappings.length === 0) return;
  const client = new DynamoDBStreamsClient({ ...setup.clientConfig });
  cleanups.defer(() => client.destroy());
  for (const mapping of mappings) {
    const poller = pollerFor(mapping, client, setup);
    cleanups.defer(() => poller.stop());
    await poller.start();
  }
}

function pollerFor(
  mapping: StreamMappingSpec,
  client: DynamoDBStreamsClient,
  setup: PollersSetup,
): StreamPoller {
  const { tableName, functionName } = mapping;
  const { lambda, publish, retryDelayMs } = setup;
  const engineStreamArn = setup.engineStreams.get(tableName);
  if (engineStreamArn === undefined) throw new Error(`the engine gave the table ${tableName} no stream`);
  return new StreamPoller({
    mapping,
    client,
    engineStreamArn,
    region: setup.region,
    async invoke(event, signal) {
      const answer = await lambda.invoke(functionName, event, { signal });
      const failed = answer.functionError !== undefined;
      publish({ type: "stream", tableName, functionName, records: event.Records.length, failed });
      return answer;
    },
    onFailure: (batch) => giveUp(mapping, batch, setup),
    onError: (error) => publish({ type: "error", where: `the stream of ${tableName}`, error }),
    ...(retryDelayMs === undefined ? {} : { retryDelayMs }),
  });
}

function giveUp(
  { tableName, functionName, streamArn, onFailureArn }: StreamMappingSpec,
  batch: FailedBatch & { readonly shardId: string },
  { spec, queues, publish }: PollersSetup,
): void {
  publish({ type: "streamFailure", tableName, functionName, batch });
  if (onFailureArn === undefined) return;
  const functionArn = spec.functions.find(({ name }) => name === functionName)?.arn ?? functionName;
  const origin = { functionArn, streamArn, shardId: batch.shardId };
  queues.send(onFailureArn, JSON.stringify(failureMessage(batch, origin, Date.now())));
}
