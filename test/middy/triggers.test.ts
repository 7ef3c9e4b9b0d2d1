import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseUnavailableError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type LeaseLockOptions, leaseLock } from "@leasehold/middy";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import { afterEach, describe, expect, test, vi } from "vitest";
import { bench, ways } from "./support.ts";

afterEach(() => vi.unstubAllEnvs());

/** What triggers deliver, by the rows of the table in `docs/lambda.md`. */
const triggers: Readonly<Record<string, readonly unknown[]>> = {
  "EventBridge rule with a schedule": [
    {
      id: "1",
      source: "aws.events",
      "detail-type": "Scheduled Event",
      time: "2026-11-21T10:00:00Z",
      detail: {},
    },
  ],
  "EventBridge Scheduler without an input": [
    { id: "1", source: "aws.scheduler", "detail-type": "Scheduled Event", detail: "{}" },
  ],
  "`SingletonJob` with a schedule": [
    { scheduledTime: "2026-11-21T10:00:00Z" },
    { job: "a", scheduledTime: "2026-11-21T10:00:00Z", executionId: "1", input: { file: "a" } },
  ],
  "any event without records, with `once`": [{ file: "a" }, undefined],
  "REST API": [
    {
      httpMethod: "POST",
      headers: { Host: "a" },
      multiValueHeaders: { Host: ["a"] },
      requestContext: { httpMethod: "POST", stage: "prod" },
    },
  ],
  "HTTP API, function URL": [
    { version: "2.0", routeKey: "$default", requestContext: { http: { method: "POST" } } },
  ],
  "load balancer": [
    { httpMethod: "POST", headers: {}, requestContext: { elb: { targetGroupArn: "arn" } } },
    { httpMethod: "POST", multiValueHeaders: {}, requestContext: { elb: { targetGroupArn: "arn" } } },
  ],
  "VPC Lattice": [
    { version: "2.0", path: "/", method: "POST", requestContext: { targetGroupArn: "arn", region: "r" } },
    { raw_path: "/", method: "POST", headers: {}, body: "", is_base64_encoded: false },
  ],
  "WebSocket API: a connection": [
    { requestContext: { connectionId: "c", routeKey: "$connect", eventType: "CONNECT" } },
  ],
  "WebSocket API: a message": [
    { requestContext: { connectionId: "c", routeKey: "$default", eventType: "MESSAGE" }, body: "{}" },
  ],
  "authorizer of a REST API, or in format 1.0": [
    { type: "TOKEN", authorizationToken: "t", methodArn: "arn:api/GET/x" },
    { type: "REQUEST", methodArn: "arn:api/GET/x", requestContext: { httpMethod: "GET" } },
  ],
  "authorizer of an HTTP API, format 2.0": [
    {
      version: "2.0",
      type: "REQUEST",
      routeArn: "arn:api/GET/x",
      requestContext: { http: { method: "GET" } },
    },
  ],
  "authorizer of AppSync": [{ authorizationToken: "t", requestContext: { apiId: "a" }, requestHeaders: {} }],
  SQS: [{ Records: [{ messageId: "1", eventSource: "aws:sqs", body: "{}" }] }],
  "Kinesis, DynamoDB streams": [
    { Records: [{ eventSource: "aws:kinesis", kinesis: {} }] },
    { Records: [{ eventSource: "aws:dynamodb", dynamodb: {} }] },
  ],
  "Kafka, MQ, DocumentDB": [
    { eventSource: "aws:kafka", records: { "topic-0": [{}] } },
    { eventSource: "SelfManagedKafka", records: {} },
    { eventSource: "aws:mq", messages: [{}] },
    { eventSource: "aws:rmq", rmqMessagesByQueue: {} },
    { eventSource: "aws:docdb", events: [{}] },
  ],
  "EventBridge Pipes": [[{ messageId: "1", body: "{}" }], [{ file: "a" }], []],
  "Data Firehose": [{ invocationId: "1", deliveryStreamArn: "arn", records: [{ data: "" }] }],
  "SNS, S3, SES": [
    { Records: [{ EventSource: "aws:sns", Sns: {} }] },
    { Records: [{ eventSource: "aws:s3", s3: {} }] },
    { Records: [{ eventSource: "aws:ses", ses: {} }] },
  ],
  "EventBridge rule with a pattern, S3's events among them": [
    { source: "aws.s3", "detail-type": "Object Created", time: "2026-11-21T10:00:00Z", detail: {} },
    { source: "shop", "detail-type": "OrderPlaced", detail: { orderId: "1" } },
    { source: "aws.scheduler", "detail-type": "AWS API Call via CloudTrail", detail: {} },
  ],
  "EventBridge Scheduler with an input": [
    { task: "clean", scheduledTime: "2026-11-21T10:00:00Z" },
    { orderId: "1", scheduledTime: "2026-11-21T10:00:00Z" },
  ],
  "CloudWatch Logs subscription": [{ awslogs: { data: "H4sI" } }],
  "destination of another function": [{ version: "1.0", requestContext: { condition: "RetriesExhausted" } }],
  "custom resource of CloudFormation": [{ RequestType: "Create", ResponseURL: "https://x", StackId: "arn" }],
  "Step Functions task": [{ file: "a" }],
  "rotation of Secrets Manager": [{ SecretId: "arn", ClientRequestToken: "1", Step: "createSecret" }],
  "trigger of Cognito": [{ triggerSource: "PreSignUp_SignUp", request: {}, response: {} }],
  "a call of your own": [
    ...[{ file: "a" }, undefined, null, "text"],
    ...[{ method: "POST" }, { raw_path: "/" }, { requestContext: null }],
  ],
};

/** The cells of the table in the page: each trigger, and what the invocation does. A row may name several triggers. */
function rowsOfPage(): [trigger: string, answer: string][] {
  const page = readFileSync(join(import.meta.dirname, "../../docs/lambda.md"), "utf8");
  const [, section = ""] = /^## The lock is held$(.*?)^## /ms.exec(page) ?? [];
  const rows = [...section.matchAll(/^\| (.*) \|$/gm)].map(([, row = ""]) => row.split(" | "));
  return rows
    .slice(1)
    .flatMap(([names = "", answer = ""]) =>
      names.split("; ").map((trigger): [string, string] => [trigger, answer]),
    );
}

const text = "text/plain";
const locked = {
  statusCode: 423,
  headers: { "Retry-After": expect.stringMatching(/^2\d$/), "Content-Type": text },
  body: expect.stringMatching(/^Locked: try again in 2\d s$/),
};

/** What an answer of the page means. */
function expectedAnswer(answer: string, event: unknown): unknown {
  const { headers, multiValueHeaders, requestContext, methodArn } = Object(event);
  switch (answer) {
    case "`skip`":
      return undefined;
    case "`throw`":
      return expect.any(LeaseUnavailableError);
    case "423":
      if (headers !== undefined || multiValueHeaders === undefined) return locked;
      return {
        ...{ statusCode: 423, body: locked.body },
        multiValueHeaders: { "Retry-After": [locked.headers["Retry-After"]], "Content-Type": [text] },
      };
    case "a policy that denies":
      return {
        principalId: "locked",
        policyDocument: {
          Version: "2012-10-17",
          Statement: [{ Action: "execute-api:Invoke", Effect: "Deny", Resource: methodArn }],
        },
      };
    case "`isAuthorized: false`":
      return { isAuthorized: false, ...(requestContext.apiId && { ttlOverride: 0 }) };
    default:
      throw new Error(`the page has an answer that no test knows: ${answer}`);
  }
}

const sqs = triggers.SQS?.[0];
const httpApi = triggers["HTTP API, function URL"]?.[0];

test("the page lists the triggers that are tested, each once", () => {
  expect(rowsOfPage().map(([trigger]) => trigger)).toEqual(Object.keys(triggers));
});

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

  test.each(rowsOfPage())("%s: %s", async (trigger, answer) => {
    const options = trigger.includes("`once`") ? { once: () => "slot" } : {};
    for (const event of triggers[trigger] ?? []) {
      expect(await answerTo(event, options), JSON.stringify(event)).toEqual(expectedAnswer(answer, event));
    }
  });

  test.each(["SQS", "Kafka, MQ, DocumentDB", "EventBridge Pipes", "Data Firehose", "SNS, S3, SES"])(
    "records are not skipped for the sake of once: %s",
    async (trigger) => {
      for (const event of triggers[trigger] ?? []) {
        expect(await answerTo(event, { once: () => "slot" })).toBeInstanceOf(LeaseUnavailableError);
      }
    },
  );

  test("a user who asks for skip gets it, for records too", async () => {
    expect(await answerTo(sqs, { whenHeld: "skip", skipResult: "skipped" })).toBe("skipped");
    vi.stubEnv(environmentNames.whenHeld, "skip");
    expect(await answerTo(sqs, { skipResult: "skipped" })).toBe("skipped");
  });

  test("a request is answered with skipResult where there is one, be it null", async () => {
    expect(await answerTo(httpApi, { skipResult: { statusCode: 202 } })).toEqual({
      statusCode: 202,
    });
    expect(await answerTo(httpApi, { skipResult: null })).toBeNull();
  });
});

test("middy's http-error-handler shows the status and the header of a refusal", async () => {
  const { client, other, clock, context } = bench();
  await other.acquire("job", { leaseDurationMs: 20_500 });
  const app = middy(async () => ({ statusCode: 200 }))
    .use(httpErrorHandler({ logger: false }))
    .use(leaseLock({ client, clock, key: "job", whenHeld: "throw" }));
  expect(await app(httpApi, context())).toMatchObject({
    statusCode: 423,
    headers: { "Retry-After": expect.stringMatching(/^2\d$/) },
  });
});

test("the time to retry after is never below a second, and is rounded up", () => {
  const headers = [0, 1, 1_000, 1_001].map((ms) => new LeaseUnavailableError("k", undefined, ms).headers);
  expect(headers.map((each) => each["Retry-After"])).toEqual(["1", "1", "1", "2"]);
});
