/** Pages that repeat numbers and names of the code: docs/limits.md and docs/DESIGN.md say what it says. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { acquireAll } from "@leasehold/client/group";
import {
  attributeNames,
  auditSortKeyPrefix,
  callSortKey,
  historySortKeyPrefix,
  leaseSortKey,
  limits,
  waiterSortKeyPrefix,
} from "@leasehold/client/schema";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { mostWorkflowPermits } from "../../packages/cdk/src/workflow/permit-seats.ts";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { exitCodes } from "../../packages/cli/src/exit-codes.ts";
import { globalFlags } from "../../packages/cli/src/flags.ts";
import { queueLimits } from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { mostReaders } from "../../packages/client/src/primitives/seats/read-write-lock.ts";
import { seatLimits, seatSortKeys } from "../../packages/client/src/primitives/seats/seat.ts";
import { mostPermits } from "../../packages/client/src/primitives/seats/semaphore.ts";
import { cacheSortKey, flightSortKey } from "../../packages/client/src/primitives/single-flight/entry.ts";
import { runLimits, runSortKeyPrefix } from "../../packages/jobs/src/runs/schema.ts";
import {
  endedTaskPrefix,
  openTaskPrefix,
  ratePeriodPrefix,
  serialKeyPrefix,
  taskLimits,
} from "../../packages/jobs/src/tasks/schema.ts";
import { adminOf } from "../support/admin.ts";

const docs = join(import.meta.dirname, "../../docs");

function page(name: string): string {
  return readFileSync(join(docs, name), "utf8");
}

/** The limit that two things share, in one row. */
function shared(limit: number, other: number): number {
  expect(other).toBe(limit);
  return limit;
}

/** What the code allows, by the row of docs/limits.md that says it. */
const allowed: Readonly<Record<string, number>> = {
  key: limits.keyBytes,
  owner: limits.ownerBytes,
  "reason of a stop, a break or a pause": limits.revocationBytes,
  "`by` of an operator": 1000,
  slot: limits.slotBytes,
  "a slot that is a time, ahead of the clock": limits.slotAheadMs,
  "`data`": limits.dataBytes,
  "`data`, nested arrays and objects": limits.dataDepth,
  "any duration": limits.durationMs,
  "`retentionMs`": limits.durationMs,
  "permits of a semaphore, readers of a read-write lock": shared(mostPermits, mostReaders),
  "`permits` of a leased workflow or a job": mostWorkflowPermits,
  "`data` of a permit or a reader": seatLimits.dataBytes,
  "waiters in a fair line": queueLimits.mostWaiters,
  "`data` with `order: fair()`": queueLimits.dataBytes,
  "attempts of a job run or a task": shared(1000, taskLimits.attempts),
  "remark of a run or a task": shared(runLimits.remarkBytes, taskLimits.remarkBytes),
  "progress of a run": runLimits.progressBytes,
  "attempts of a run before the latest": runLimits.pastAttempts,
  "id or `serialKey` of a task": shared(taskLimits.idBytes, taskLimits.serialKeyBytes),
  "payload of a task": taskLimits.payloadBytes,
  // Held by tests of their own: the group's below, the durable lease's in test/durable/course.test.ts.
  "keys of `acquireAll`": 100,
  "`data` of a group, all keys together": 4 * 1024 * 1024,
  "a durable lease, at least": 3_000,
};

describe("docs/limits.md", () => {
  it("has the numbers of the code, and no others", () => {
    const [tables = ""] = page("limits.md").split("## Throughput");
    const rows = [...tables.matchAll(/^\| (?<what>[^|]+) \| (?<number>[\d,]+)[^|]*\|$/gm)];
    const said = rows.map(({ groups }) => [groups?.what, Number(groups?.number?.replaceAll(",", ""))]);
    expect(Object.fromEntries(said)).toEqual(allowed);
  });

  it("says how long the name of an operator may be", () => {
    const client = new LeaseClient({ store: new MemoryLeaseStore() });
    expect(new LeaseOperator(client, { by: "a".repeat(1000) }).by).toHaveLength(1000);
    expect(() => new LeaseOperator(client, { by: "a".repeat(1001) })).toThrow("1000");
  });

  it("says how many keys a group may have", async () => {
    const client = new LeaseClient({ store: new MemoryLeaseStore() });
    const keys = Array.from({ length: 101 }, (_, index) => `key/${index}`);
    await using group = await acquireAll(client, keys.slice(0, 100));
    expect(group.keys).toHaveLength(100);
    await expect(acquireAll(client, keys)).rejects.toThrow("100");
  });
});

describe("docs/DESIGN.md", () => {
  const [, section = ""] = /^## Table\n(.*?)^## /ms.exec(page("DESIGN.md")) ?? [];
  const [attributes = "", kinds = ""] = section.split("The other primitives");
  const namesIn = (cell: string): readonly string[] =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
  /** The names in front of the colon of each item. */
  const listedIn = (lists: string): readonly string[] =>
    [...lists.matchAll(/^- (`[^:]*`):/gm)].flatMap(([, names = ""]) => namesIn(names));

  it("names every attribute of a lock's item, and those that a release removes", async () => {
    const { partitionKey, sortKey, taskToken, callbackId, ...ofLocks } = attributeNames;
    expect([...listedIn(attributes)].sort()).toEqual(Object.values(ofLocks).sort());

    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "o" });
    await (await client.acquire("k")).release();
    const options = { data: { note: "held" }, owner: "o", reentrant: true, slot: "1" };
    const lease = await client.acquire("k", options);
    await adminOf(client).requestRevocation("k", { token: lease.token });
    const held = Object.keys(store.peek({ pk: "k", sk: "lease" }) ?? {});
    await lease.complete();
    const left = Object.keys(store.peek({ pk: "k", sk: "lease" }) ?? {});
    const [removed = ""] = attributes.split("Attributes that stay");
    expect(held.filter((name) => !left.includes(name)).sort()).toEqual([...listedIn(removed)].sort());
  });

  it("names every kind of item", () => {
    const prefixes = [
      waiterSortKeyPrefix,
      auditSortKeyPrefix,
      historySortKeyPrefix,
      runSortKeyPrefix,
      openTaskPrefix,
      serialKeyPrefix,
      ratePeriodPrefix,
    ];
    const known = [
      ...[leaseSortKey, callSortKey, cacheSortKey, flightSortKey, ...Object.values(seatSortKeys)],
      ...[...prefixes, endedTaskPrefix, "job#"].map((prefix) => `${prefix}…`),
    ];
    expect([...listedIn(kinds)].sort()).toEqual(known.sort());
  });
});

describe("docs/command-line.md", () => {
  it("names every command, and every exit code", () => {
    const [, table = ""] = /^## Commands\n(.*?)^## /ms.exec(page("command-line.md")) ?? [];
    const named = [...table.matchAll(/`(?<name>\w+)/g)].map(({ groups }) => groups?.name);
    expect(named).toEqual(expect.arrayContaining(Object.keys(commands).map((name) => name.split(" ")[0])));
    const [, codes = ""] = /^## Exit codes\n(.*)/ms.exec(page("command-line.md")) ?? [];
    const said = [...codes.matchAll(/^\| (?<codes>\d[\d, ]*)/gm)].flatMap(({ groups }) =>
      (groups?.codes ?? "").split(",").map(Number),
    );
    // A fault of the program has no line, and 130 is 128 and the number of a signal.
    const known = Object.values(exitCodes).filter((code) => ![70, 130].includes(code));
    expect(said).toEqual(expect.arrayContaining(known));
  });
});

describe("every page", () => {
  /** Each call of a command that a page shows, in a block or in a sentence: its words before `--` and `#`. */
  const calls = globSync("**/*.md", { cwd: docs }).flatMap((file) => {
    const text = page(file).replace(/\\\n\s*/g, "");
    const shown = [...text.matchAll(/(?:^|[`|] ?)(?:npx @leasehold\/cli|leasehold) (?<call>[a-z][^`\n]*)/gm)];
    return shown.map(({ groups }) => [file, (groups?.call ?? "").replace(/ (?:--|#|&&) .*/, "")] as const);
  });

  it("shows calls of commands", () => {
    expect(calls.length).toBeGreaterThan(20);
  });

  it.each(calls)("%s: the flags of `leasehold %s` exist", async (_, call) => {
    const [first = "", second = ""] = call.split(" ");
    const entry = commands[`${first} ${second}`] ?? commands[first];
    const { flags = {} } = (await entry?.load()) ?? {};
    const known = Object.entries({ ...globalFlags, help: {}, ...flags }).flatMap(([name, flag]) => [
      `--${name}`,
      `-${"short" in flag ? flag.short : "h"}`,
    ]);
    const said = call.match(/(?<= )--?[a-z][a-z-]*/g) ?? [];
    expect(entry === undefined ? [] : said.filter((flag) => !known.includes(flag))).toEqual([]);
  });
});
