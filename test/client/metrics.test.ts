import type { LeaseClientOptions, LeaseEvent } from "@leasehold/client";
import { dimensionNames, metricsLine, metricsListener } from "@leasehold/client/metrics";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { type LeaseLockOptions, leased } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { describe, expect, it } from "vitest";

/** What CloudWatch reads in a line: the dimensions of each set, with their values. */
function dimensionsIn(line: string): Record<string, string>[] {
  const { _aws, ...values } = JSON.parse(line);
  const [directive] = _aws.CloudWatchMetrics;
  return directive.Dimensions.map((set: string[]) =>
    Object.fromEntries(set.map((name) => [name, values[name]])),
  );
}

const acquired: LeaseEvent = {
  type: "acquired",
  key: "import/2026-01-01",
  sortKey: "lease",
  owner: "me",
  fencingToken: 7,
  waitedMs: 12,
  expiresAt: 30_000,
};

describe("metrics by key", () => {
  const linesOf = (
    options: Omit<Parameters<typeof metricsListener>[0], "tableName">,
    event: LeaseEvent = acquired,
  ): string[] => {
    const lines: string[] = [];
    metricsListener({ tableName: "leases", ...options }, (line) => lines.push(line))(event);
    return lines;
  };

  it("are not written unless they are asked for: each value of a dimension costs", () => {
    const [line = ""] = linesOf({ job: "j" });
    expect(dimensionsIn(line)).toEqual([{ Table: "leases" }, { Table: "leases", Job: "j" }]);
    expect(line).not.toContain("import");
  });

  it("are written beside those of the table and of the job, so that alarms on these go on", () => {
    const [line = ""] = linesOf({ job: "j", keyDimension: true });
    expect(dimensionsIn(line)).toEqual([
      { Table: "leases" },
      { Table: "leases", Job: "j" },
      { Table: "leases", Key: "import/2026-01-01" },
    ]);
  });

  it("can be those of a group of keys, or of none", () => {
    const [grouped = ""] = linesOf({ keyDimension: (key) => key.split("/")[0] });
    expect(dimensionsIn(grouped)[1]).toEqual({ Table: "leases", Key: "import" });
    for (const nothing of [undefined, ""]) {
      const [line = ""] = linesOf({ keyDimension: () => nothing });
      expect(dimensionsIn(line)).toEqual([{ Table: "leases" }]);
    }
  });

  it("have none of the metrics that are about no single lock: each would cost for every key", () => {
    const line = metricsLine(
      { tableName: "leases", job: "j", key: "k" },
      { LeaseReleased: 1, JobSucceeded: 1 },
      0,
    );
    const [ofKey, others] = JSON.parse(line)._aws.CloudWatchMetrics;
    expect(ofKey).toMatchObject({
      Dimensions: [["Table"], ["Table", "Job"], ["Table", "Key"]],
      Metrics: [{ Name: "LeaseReleased" }],
    });
    expect(others).toMatchObject({
      Dimensions: [["Table"], ["Table", "Job"]],
      Metrics: [{ Name: "JobSucceeded" }],
    });
  });

  it("are not written of an event that is about no lock", () => {
    const skew = { type: "skew", offsetMinMs: 5, offsetMaxMs: 9, clockSkewMs: 1 } as const;
    expect(dimensionsIn(linesOf({ keyDimension: true }, skew)[0] ?? "")).toEqual([{ Table: "leases" }]);
  });

  it.each([
    ["café\n", "caf%C3%A9%0A"],
    [":colon", "%3Acolon"],
    ["  ", "%20%20"],
    ["a b", "a b"],
    ["\ud800", "%EF%BF%BD"],
    ["x".repeat(2_000), "x".repeat(1_024)],
  ])("have a value that CloudWatch takes: %j", (key, value) => {
    const line = metricsLine({ tableName: "leases", key }, { LeaseAcquired: 1 }, 0);
    expect(JSON.parse(line)[dimensionNames.key]).toBe(value);
  });
});

describe("the metrics of a handler's lock", () => {
  const context = { functionName: "job", awsRequestId: "1", getRemainingTimeInMillis: () => 60_000 };
  const run = async (options: Pick<LeaseLockOptions, "metrics" | "onEvent">): Promise<string[]> => {
    const lines: string[] = [];
    const settings = { store: new MemoryLeaseStore(), clock: new ManualClock(), key: "k" };
    const metrics = options.metrics ?? ((line: string) => void lines.push(line));
    await leased({ ...settings, ...options, metrics }, () => undefined)({}, context as Context);
    return lines;
  };

  it("go on beside listeners of its user's, one or several, which hear with metrics: false as well", async () => {
    const heard: string[] = [];
    const hear = (event: LeaseEvent): void => void heard.push(event.type);
    const shapes: LeaseClientOptions["onEvent"][] = [hear, [hear], [hear, hear]];
    for (const onEvent of shapes) {
      heard.length = 0;
      const lines = await run(onEvent === undefined ? {} : { onEvent });
      expect(lines.map((line) => JSON.parse(line))).toEqual([
        expect.objectContaining({ LeaseAcquired: 1, LeaseReleased: 1 }),
      ]);
      const each = Array.isArray(onEvent) ? onEvent.length : 1;
      expect(heard.filter((type) => type === "acquired")).toHaveLength(each);
    }
    heard.length = 0;
    expect(await run({ metrics: false, onEvent: hear })).toEqual([]);
    expect(heard).toEqual(["acquired", "released"]);
  });
});
