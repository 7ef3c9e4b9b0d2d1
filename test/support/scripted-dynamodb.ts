import { afterAll, beforeAll } from "vitest";
import { type Reaction, refuse, type ScriptedServer, say, startScriptedServer } from "./scripted-server.ts";

/** What is answered to each operation: a body, or what to do. Operations without an answer are not known. */
export type Answers = Readonly<Record<string, object | Reaction>>;

/** A server that answers DynamoDB's operations, and those of STS, as a test tells it. */
export interface ScriptedDynamoDb {
  readonly url: string;
  /** The variables that lead to it. */
  readonly env: NodeJS.ProcessEnv;
  /** What it answers from now on. */
  answer(answers: Answers): void;
  /** The operations and bodies that have arrived since. */
  sent(): readonly (readonly [operation: string, body: Record<string, unknown>])[];
}

function operationOf(headers: NodeJS.Dict<string | string[]>): string {
  return String(headers["x-amz-target"] ?? "GetCallerIdentity").replace("DynamoDB_20120810.", "");
}

/** Serves one for the tests of this file. */
export function scriptedDynamoDb(): ScriptedDynamoDb {
  let server: ScriptedServer;
  beforeAll(async () => {
    server = await startScriptedServer();
  });
  afterAll(() => server.close());
  return {
    get url() {
      return server.url;
    },
    get env() {
      return {
        AWS_ENDPOINT_URL_DYNAMODB: server.url,
        AWS_ENDPOINT_URL_STS: server.url,
        AWS_REGION: "eu-central-1",
      };
    },
    answer: (answers) =>
      server.script((response, request) => {
        const answer = answers[operationOf(request.headers)] ?? refuse("UnknownOperationException");
        const react = typeof answer === "function" ? (answer as Reaction) : say(answer);
        react(response, request);
      }),
    sent: () =>
      server.requests
        .filter(({ headers }) => headers["x-amz-target"] !== undefined)
        .map(({ headers, body }) => [operationOf(headers), JSON.parse(body)] as const),
  };
}

/** A lease table as it should be, in the words of DescribeTable. */
export const goodTable = {
  TableName: "leases",
  TableArn: "arn:aws:dynamodb:eu-central-1:123456789012:table/leases",
  TableStatus: "ACTIVE",
  BillingModeSummary: { BillingMode: "PAY_PER_REQUEST" },
  AttributeDefinitions: [
    { AttributeName: "pk", AttributeType: "S" },
    { AttributeName: "sk", AttributeType: "S" },
  ],
  KeySchema: [
    { AttributeName: "pk", KeyType: "HASH" },
    { AttributeName: "sk", KeyType: "RANGE" },
  ],
  DeletionProtectionEnabled: true,
};

/** What is answered to questions about the settings of that table. */
export const goodSettings: Answers = {
  DescribeTable: { Table: goodTable },
  DescribeTimeToLive: { TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "ttl" } },
  DescribeContinuousBackups: {
    ContinuousBackupsDescription: {
      ContinuousBackupsStatus: "ENABLED",
      PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: "ENABLED" },
    },
  },
  ListTagsOfResource: { Tags: [{ Key: "leasehold", Value: "true" }] },
};
