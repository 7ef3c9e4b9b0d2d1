import { LeaseConfigurationError, LeaseTableError } from "@leasehold/client";
import { conformanceChecks } from "@leasehold/client/conformance";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { Interruption } from "../../packages/cli/src/exit-codes.ts";
import { leasehold } from "../support/command-line.ts";
import { itemsOf, put } from "../support/foreign-items.ts";
import { wrongStores } from "../support/wrong-stores.ts";

async function tableWithOthers(): Promise<MemoryLeaseStore> {
  const store = new MemoryLeaseStore();
  put(store, "orders", "lease", { n: 1 });
  return store;
}

/** A store whose every method rejects. */
function refusing(error: Error): MemoryLeaseStore {
  const reject = (): Promise<never> => Promise.reject(error);
  const methods = ["update", "updateMany", "transact", "get", "query", "scan"];
  return Object.assign(new MemoryLeaseStore(), Object.fromEntries(methods.map((method) => [method, reject])));
}

describe("leasehold conformance", () => {
  it("shows each check, what it measured and what it cost, and ends with 0", async () => {
    const { code, stdout, stderr } = await leasehold(["conformance"], { store: new MemoryLeaseStore() });
    expect([code, stderr]).toEqual([0, `${conformanceChecks.length - 1} ok, 0 failed, 1 skipped. exit 0\n`]);
    for (const { name } of conformanceChecks) expect(stdout).toContain(name);
    expect(stdout).toMatch(/✓ writes {8}a write makes an item/);
    expect(stdout).toMatch(/\? calls {9}not checked, because its answers tell no time/);
    expect(stdout).toMatch(/latency {2}one write [\d.]+ ms \(p50\), [\d.]+ ms \(p99\) of 100/);
    expect(stdout).toMatch(/batch {4}25 writes in one request at most/);
    expect(stdout).toMatch(
      /cost {5}[\d,]+ calls, about [\d,]+ write units and [\d,]+ read units \(\$0\.0\d+ on demand\)/,
    );
  });

  it("ends with 2 where something does not hold, and says what", async () => {
    const store = wrongStores["ends a query after its first page"]?.make();
    const { code, stdout, stderr } = await leasehold(["conformance"], { ...(store && { store }) });
    expect([code, stderr]).toEqual([2, expect.stringContaining("1 failed, 1 skipped. exit 2")]);
    expect(stdout).toMatch(/✗ reads {9}NOT: the pages of a query join/);
    expect(stdout).not.toContain("latency");
  });

  it("prints one document as JSON", async () => {
    const { code, stdout } = await leasehold(["conformance", "--json"], { store: new MemoryLeaseStore() });
    const report = JSON.parse(stdout);
    expect([code, report.exitCode, report.leftBehind]).toEqual([0, 0, []]);
    expect(report.results).toHaveLength(conformanceChecks.length);
    expect(report.results[0]).toMatchObject({ group: "writes", outcome: "ok", tookMs: expect.any(Number) });
    expect(report.measured).toMatchObject({ largestBatch: 25, writeMs: { of: 100 } });
    expect(report.cost).toMatchObject({ calls: expect.any(Number), writeUnits: expect.any(Number) });
    const { stdout: lines } = await leasehold(["conformance", "--ndjson"], { store: new MemoryLeaseStore() });
    expect(lines.trimEnd().split("\n")).toHaveLength(1);
  });

  it("asks before it writes into a table with items of others, and takes no for an answer", async () => {
    const store = await tableWithOthers();
    const refused = await leasehold(["conformance"], { store });
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining("--yes says yes")]);
    const no = await leasehold(["conformance"], { store, answers: ["n"] });
    expect([no.code, no.stderr]).toEqual([1, expect.stringContaining("has items of others")]);
    const yes = await leasehold(["conformance"], { store, answers: ["y"] });
    expect(yes.code).toBe(0);
    expect((await leasehold(["conformance", "--yes"], { store })).code).toBe(0);
    expect(await itemsOf(store)).toEqual([{ pk: "orders", sk: "lease", n: 1 }]);
  });

  it("writes under the prefix that it is given alone", async () => {
    const keys = new Set<string>();
    class Watched extends MemoryLeaseStore {
      override updateNow(request: Parameters<MemoryLeaseStore["updateNow"]>[0]) {
        keys.add(request.key.pk.slice(0, 7));
        return super.updateNow(request);
      }
    }
    expect((await leasehold(["conformance", "--prefix", "mine/a-"], { store: new Watched() })).code).toBe(0);
    expect([...keys]).toEqual(["mine/a-"]);
  });

  it("sends nothing with --dry-run but shows the first write", async () => {
    const store = new MemoryLeaseStore();
    const dry = await leasehold(["conformance", "--dry-run"], { store });
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining('"operation": "update"')]);
    expect(await itemsOf(store)).toEqual([]);
  });

  it("says what to do without permission, and where there is no table", async () => {
    const denied = refusing(new LeaseConfigurationError("LEASE_ACCESS_DENIED", "refused access"));
    const first = await leasehold(["conformance", "--yes"], { store: denied });
    expect([first.code, first.stderr]).toEqual([
      77,
      expect.stringContaining(
        "leasehold table policy primitives --prefix leasehold-conformance/ prints the policy",
      ),
    ]);
    const missing = refusing(new LeaseTableError("LEASE_TABLE_NOT_FOUND", "does not exist"));
    const second = await leasehold(["conformance"], { store: missing });
    expect([second.code, second.stderr]).toEqual([78, expect.stringContaining("leasehold table create")]);
  });

  it("ends when it is interrupted while it writes, and leaves nothing", async () => {
    const stop = new AbortController();
    const store = new MemoryLeaseStore();
    const update = store.update.bind(store);
    store.update = async (...call) => {
      stop.abort(new Interruption("SIGINT"));
      return await update(...call);
    };
    expect((await leasehold(["conformance"], { store, signal: stop.signal })).code).toBe(130);
    expect(await itemsOf(store)).toEqual([]);
  });
});
