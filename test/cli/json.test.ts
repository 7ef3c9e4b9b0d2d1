// What other programs read: records with a kind and a version.
import { createHash } from "node:crypto";
import { LeaseOperator } from "@leasehold/client/admin";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { describe, expect, it } from "vitest";
import {
  jsonSchemaOf,
  plainFields,
  type RecordKind,
  recordKinds,
  schemaName,
} from "../../packages/cli/src/terminal/record-kinds.ts";
import { wrongRecords } from "../support/json-records.ts";
import { lockTable } from "../support/lock-table.ts";

const kinds = Object.keys(recordKinds) as RecordKind[];

/** A table with something of everything. */
async function fullTable() {
  const table = lockTable();
  const { clock, holder } = table;
  const client = holder("worker");
  await client.acquire("import", { leaseDurationMs: 60_000, data: { pod: "eu-1" } });
  await new Semaphore(client, "payments", { permits: 3 }).acquire({ leaseDurationMs: 60_000 });
  await new ReadWriteLock(client, "catalogue").write({ leaseDurationMs: 60_000 });
  const operator = new LeaseOperator(client, { by: "alice" });
  await operator.pause("feed", { forMs: 3_600_000, reason: "vendor down" });
  const [asked] = (await operator.describe("import")).leases;
  await operator.stop("import", { token: asked?.token ?? "", reason: "INC-1" });
  await new JobRuns(client, "report").run(new Date(clock.now()).toISOString(), async ({ progress }) => {
    await progress({ rows: 3 });
  });
  await new JobRuns(client, "report").skip(new Date(clock.now() - 3_600_000), "holiday", { by: "alice" });
  const tasks = new TaskSet(client, "orders");
  await tasks.add([{ id: "one", payload: { rows: 1 } }, { id: "two" }, { id: "three" }]);
  await (await tasks.claim())?.fail("no address", { final: true });
  await tasks.claim();
  return table;
}

function digestOf(schema: object): string {
  return createHash("sha256").update(JSON.stringify(schema)).digest("hex").slice(0, 16);
}

describe("records for other programs", () => {
  it("have schemas whose changes are seen: vitest -u renews them", () => {
    // Where a field goes or means something else, raise the kind's version.
    const digests = kinds.map((kind) => `${schemaName(kind)} ${digestOf(jsonSchemaOf(kind))}`);
    expect(`\n${digests.join("\n")}\n`).toMatchInlineSnapshot(`
      "
      lock/1 1f835c4870d98899
      key/1 cf679da9a530ef11
      change/1 55865fe0237bd5b1
      action/1 a10c12b524b0735b
      handle/1 cc764211a2a28540
      job/1 cb03275f0d7256b8
      run/1 0ebb6109b783be8e
      missed/1 909f1eee130505a2
      tasks/1 3dd3f8c06b346f8f
      task/1 eac32f0d29de213d
      tasksAdded/1 9a561e8e5ee426f1
      tasksWorked/1 a6cfbb1ce51c3ffe
      table/1 799b3ee7d7a6ecd3
      tableCreated/1 b63abc3e9922735c
      findings/1 917269910fe4e0a3
      conformance/1 deadc63b83d5f03c
      costs/1 7caee00ca7e3a6bb
      cost/1 da49e85a50cee62c
      engine/1 1cd0d771238d6404
      error/1 d833c0dee6e58b42
      version/1 b526a8764d549de9
      "
    `);
  });

  it.each([
    [["ls", "--all", "--tombstones"], "lock/1"],
    [["get", "import"], "key/1"],
    [["get", "payments"], "key/1"],
    [["get", "feed"], "key/1"],
    [["get", "report"], "key/1"],
    [["audit"], "action/1"],
    [["history", "import"], "change/1"],
    [["jobs"], "job/1"],
    [["jobs", "runs", "report", "--since", "2d"], "run/1"],
    [["tasks", "orders"], "tasks/1"],
    [["tasks", "ls", "orders"], "task/1"],
    [["version"], "version/1"],
    [["cost", "--lease", "30s"], "costs/1"],
    [["help", "errors", "LEASE_LOST"], "error/1"],
    [["stop", "payments", "--yes"], "action/1"],
  ])("of %j are as their schema says", async (args, schema) => {
    const { call } = await fullTable();
    for (const format of ["json", "ndjson"] as const) {
      // The call itself looks for what is wrong with its records.
      const { stdout } = await call([...args, `--${format}`], { columns: undefined });
      const [record] = [JSON.parse(format === "json" ? stdout : (stdout.split("\n")[0] ?? ""))].flat();
      if (args[0] !== "cost" || format === "json") expect(record).toMatchObject({ schema });
    }
  });

  it("are found wrong where they are", () => {
    const right = { schema: "tasksAdded/1", set: "s", added: 1, known: 0 };
    expect(wrongRecords(JSON.stringify(right), "json")).toEqual([]);
    expect(wrongRecords(JSON.stringify({ ...right, added: "1", more: 2, known: undefined }), "json")).toEqual(
      [
        "tasksAdded/1.known is missing",
        "tasksAdded/1.added is string, and not integer",
        "tasksAdded/1.more is in no schema",
      ],
    );
    expect(wrongRecords("{}", "json")).toHaveLength(1);
  });

  it("of each kind have a schema that leasehold schema prints", async () => {
    const { call } = lockTable();
    const listed = (await call(["schema"])).stdout.trim().split("\n");
    expect(listed.map((line) => line.split(" ")[0])).toEqual(kinds.map(schemaName));
    for (const kind of kinds) {
      expect(JSON.parse((await call(["schema", kind])).stdout)).toEqual(jsonSchemaOf(kind));
    }
    expect(JSON.parse((await call(["schema", "lock/1"])).stdout)).toEqual(jsonSchemaOf("lock"));
    expect((await call(["schema", "locks"])).stderr).toContain("did you mean lock?");
  });
});

describe("tab-separated tables", () => {
  it("have the fields of the records, numbers as numbers, and no sentence", async () => {
    const { call } = await fullTable();
    const { stdout } = await call(["ls", "-o", "tsv"], { columns: undefined });
    const [titles = "", ...rows] = stdout.replace(/\n$/, "").split("\n");
    const names = titles.split("\t");
    expect(names).toEqual(plainFields("lock"));
    const records = JSON.parse((await call(["ls", "--json"], { columns: undefined })).stdout);
    expect(rows.map((line) => line.split("\t"))).toEqual(
      records.map((record: Record<string, unknown>) => names.map((name) => String(record[name] ?? ""))),
    );
    expect(names).not.toContain("note");
    expect(stdout).not.toMatch(/ago|waiting\b.*waiting| of \d/);
  });
});
