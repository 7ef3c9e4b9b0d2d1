import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";

/** The statuses of the table: each look shows the next one, and the last one stays. An empty one: there is no table. */
let statuses: string[];
let ttl: { readonly TimeToLiveStatus: string; readonly AttributeName?: string | undefined };
let sent: string[];
/** What others do, or the service answers, before it takes a request. */
let before: (request: string) => void;

beforeEach(() => {
  statuses = [""];
  ttl = { TimeToLiveStatus: "DISABLED" };
  sent = [];
  before = () => undefined;
});

function refuse(name: string, message = "as the test wants it"): never {
  throw Object.assign(new Error(message), { name, $metadata: { httpStatusCode: 400 } });
}

const keyNames = ["pk", "sk"];
const dynamodb = {
  send: async (command: { readonly input: object }) => {
    const request = command.constructor.name.replace("Command", "");
    sent.push(request);
    before(request);
    if (command instanceof CreateTableCommand) {
      if (statuses[0] !== "") refuse("ResourceInUseException");
      statuses = ["CREATING", "ACTIVE"];
    }
    if (command instanceof DescribeTableCommand) {
      const [TableStatus = ""] = statuses.length > 1 ? statuses.splice(0, 1) : statuses;
      if (TableStatus === "") refuse("ResourceNotFoundException");
      const AttributeDefinitions = keyNames.map((AttributeName) => ({ AttributeName, AttributeType: "S" }));
      return { Table: { TableStatus, KeySchema: AttributeDefinitions, AttributeDefinitions } };
    }
    if (command instanceof DescribeTimeToLiveCommand) return { TimeToLiveDescription: ttl };
    if (command instanceof UpdateTimeToLiveCommand) {
      if (ttl.TimeToLiveStatus !== "DISABLED") refuse("ValidationException", "TimeToLive is already enabled");
      ttl = { TimeToLiveStatus: "ENABLING", ...command.input.TimeToLiveSpecification };
    }
    return {};
  },
};

/** Makes the table; time passes as it is needed. */
async function make(): Promise<void> {
  const clock = new ManualClock();
  let isOver = false;
  const made = createLeaseTable({ tableName: "leases", dynamodb: dynamodb as never, clock, waitMs: 5_000 });
  const over = made.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  while (!isOver) await clock.advance(500);
  expect(clock.pending).toBe(0);
  await over;
}

describe("createLeaseTable", () => {
  it.each([
    ["makes a table", [""]],
    ["makes a table in place of one that is being deleted", ["DELETING", "DELETING", ""]],
    ["waits for a table that another caller has begun", ["CREATING", "CREATING", "ACTIVE"]],
    ["takes a table that is there", ["ACTIVE"]],
    ["takes a table that is being changed", ["UPDATING"]],
  ])("%s, and turns ttl on when it is ready", async (_case, found) => {
    statuses = found;
    await make();
    expect(statuses).toEqual([found.at(-1) || "ACTIVE"]);
    expect(ttl).toMatchObject({ AttributeName: "ttl", Enabled: true });
    expect(sent.slice(-2)).toEqual(["DescribeTimeToLive", "UpdateTimeToLive"]);
    expect(sent.filter((request) => /TimeToLive/.test(request))).toHaveLength(2);
  });

  it.each(["ENABLED", "ENABLING"])("leaves ttl alone that is %s", async (TimeToLiveStatus) => {
    ttl = { TimeToLiveStatus, AttributeName: "ttl" };
    await make();
    expect(sent).not.toContain("UpdateTimeToLive");
  });

  const byAnother = (AttributeName: string) => (request: string) => {
    if (request === "UpdateTimeToLive") ttl = { TimeToLiveStatus: "ENABLING", AttributeName };
  };

  it("leaves ttl alone that another caller turns on at the same moment", async () => {
    before = byAnother("ttl");
    await make();
  });

  it("refuses a table with ttl on another attribute, also where it was turned on at the same moment", async () => {
    const refusal = { code: "LEASE_TABLE_MISMATCH", message: expect.stringContaining('"expires"') };
    before = byAnother("expires");
    expect(await failureOf(make())).toMatchObject(refusal);
    expect(await failureOf(make())).toMatchObject(refusal);
  });

  it.each(["CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"])(
    "without the permission for %s says so at once",
    async (action) => {
      before = (request) => {
        if (request === action) refuse("AccessDeniedException");
      };
      expect(await failureOf(make())).toMatchObject({ code: "LEASE_ACCESS_DENIED" });
      expect(sent.at(-1)).toBe(action);
    },
  );

  it("gives up when its time is over, and says what helps", async () => {
    statuses = ["CREATING"];
    expect(await failureOf(make())).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining('"leases" is not ready in time: wait longer with waitMs'),
    });
    expect(sent).not.toContain("DescribeTimeToLive");
  });
});
