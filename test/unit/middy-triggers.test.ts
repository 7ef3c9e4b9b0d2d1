import { LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type LeaseLockOptions, leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import { afterEach, describe, expect, test, vi } from "vitest";
import { bench, ways } from "./middy-support.ts";

afterEach(() => vi.unstubAllEnvs());

/** What triggers deliver whose records are gone when the invocation succeeds. */
const withRecords: Record<string, object> = {
  SQS: { Records: [{ messageId: "1", eventSource: "aws:sqs", body: "{}" }] },
  Kinesis: { Records: [{ eventSource: "aws:kinesis", kinesis: {} }] },
  "DynamoDB streams": { Records: [{ eventSource: "aws:dynamodb", dynamodb: {} }] },
  SNS: { Records: [{ EventSource: "aws:sns", Sns: {} }] },
  S3: { Records: [{ eventSource: "aws:s3", s3: {} }] },
  Kafka: { eventSource: "aws:kafka", records: { "topic-0": [{}] } },
  "self-managed Kafka": { eventSource: "SelfManagedKafka", records: {} },
  "Amazon MQ": { eventSource: "aws:mq", messages: [{}] },
  RabbitMQ: { eventSource: "aws:rmq", rmqMessagesByQueue: {} },
  DocumentDB: { eventSource: "aws:docdb", events: [{}] },
};

/** What APIs deliver, whose caller waits for a status. */
const requests: Record<string, object> = {
  "an HTTP API": { version: "2.0", routeKey: "$default", requestContext: { http: { method: "POST" } } },
  "a REST API": { httpMethod: "POST", requestContext: { httpMethod: "POST", stage: "prod" } },
  "a load balancer": { httpMethod: "POST", requestContext: { elb: { targetGroupArn: "arn" } } },
  "a WebSocket API": { requestContext: { connectionId: "c", routeKey: "$default" } },
};

/** What can be left out: the next tick brings the same. */
const others: Record<string, unknown> = {
  "a schedule": { scheduledTime: "2026-11-21T10:00:00Z" },
  "an EventBridge rule": { source: "aws.events", "detail-type": "Scheduled Event", detail: {} },
  "an event of one's own": { file: "a" },
  "a failed invocation's destination": { requestContext: { condition: "RetriesExhausted" } },
  nothing: undefined,
};

describe.each(Object.entries(ways))("%s, while the lock is held:", (_, wrap) => {
  async function answerTo(event: unknown, options: LeaseLockOptions = {}): Promise<unknown> {
    const { client, other, clock, context } = bench();
    await other.acquire("job", { leaseDurationMs: 20_500 });
    let runs = 0;
    const app = wrap({ client, clock, key: "job", ...options }, () => {
      runs += 1;
    });
    const answer = await app(event, context()).catch((error: unknown) => error);
    expect(runs).toBe(0);
    return answer;
  }

  test.each(Object.entries(withRecords))("%s gets its records back, for it rejects", async (_, event) => {
    expect(await answerTo(event)).toBeInstanceOf(LeaseUnavailableError);
  });

  test("a user who asks for skip gets it, for records too", async () => {
    expect(await answerTo(withRecords.SQS, { whenHeld: "skip", skipResult: "skipped" })).toBe("skipped");
    vi.stubEnv(environmentNames.whenHeld, "skip");
    expect(await answerTo(withRecords.SQS, { skipResult: "skipped" })).toBe("skipped");
  });

  test("records of a slot that is done are skipped: there is nothing to do", async () => {
    const { client, clock, context } = bench();
    const app = wrap(
      {
        client,
        clock,
        key: "job",
        once: () => "slot",
        skipResult: (_: unknown, __: unknown, reason: unknown) => reason,
      },
      () => "done",
    );
    expect(await app(withRecords.SQS, context())).toBe("done");
    expect(await app(withRecords.SQS, context())).toBeInstanceOf(SlotDoneError);
  });

  test.each(Object.entries(others))("%s is skipped", async (_, event) => {
    expect(await answerTo(event, { skipResult: "skipped" })).toBe("skipped");
    expect(await answerTo(event)).toBeUndefined();
  });

  test.each(Object.entries(requests))(
    "%s answers 423 with Retry-After, and names nobody",
    async (_, event) => {
      expect(await answerTo(event)).toEqual({
        statusCode: 423,
        headers: { "Retry-After": expect.stringMatching(/^2\d$/), "Content-Type": "text/plain" },
        body: expect.stringMatching(/^Locked: try again in 2\d s$/),
      });
    },
  );

  test("a request is answered with skipResult where there is one, be it null", async () => {
    expect(await answerTo(requests["an HTTP API"], { skipResult: { statusCode: 202 } })).toEqual({
      statusCode: 202,
    });
    expect(await answerTo(requests["an HTTP API"], { skipResult: null })).toBeNull();
  });

  test("a request that throws carries the status and the header", async () => {
    expect(await answerTo(requests["an HTTP API"], { whenHeld: "throw" })).toMatchObject({
      name: "LeaseUnavailableError",
      statusCode: 423,
      headers: { "Retry-After": expect.stringMatching(/^2\d$/) },
    });
  });
});

test("middy's http-error-handler shows the status and the header of a refusal", async () => {
  const { client, other, clock, context } = bench();
  await other.acquire("job", { leaseDurationMs: 20_500 });
  const app = middy(async () => ({ statusCode: 200 }))
    .use(httpErrorHandler({ logger: false }))
    .use(leaseLock({ client, clock, key: "job", whenHeld: "throw" }));
  expect(await app(requests["an HTTP API"], context())).toMatchObject({
    statusCode: 423,
    headers: { "Retry-After": expect.stringMatching(/^2\d$/) },
  });
});

test("the time to retry after is never below a second, and is rounded up", () => {
  const headers = [0, 1, 1_000, 1_001].map((ms) => new LeaseUnavailableError("k", undefined, ms).headers);
  expect(headers.map((each) => each["Retry-After"])).toEqual(["1", "1", "1", "2"]);
});
