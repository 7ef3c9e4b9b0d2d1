import { LeaseServiceError } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { heldLease, put } from "../support/foreign-items.ts";
import { changedStore, lockTable } from "../support/lock-table.ts";

// Its module is loaded before a clock moves on.
beforeAll(() => leasehold(["wait", "--help"]));

describe("leasehold wait", () => {
  it("ends with 0 when the key is released, and says after how long", async () => {
    const { call, clock, holder } = lockTable();
    const lease = await holder("worker").acquire("deploy/prod");
    const called = call(["wait", "deploy/prod"]);
    await clock.advance(4_500);
    await lease.release();
    await clock.advance(1_000);
    expect(await called).toEqual({ code: 0, stdout: "", stderr: "deploy/prod is free, after 5.0s\n" });
  });

  it("ends with 0 at once for a free key and for an expired lease, and prints nothing with -q", async () => {
    const { call, clock, holder } = lockTable();
    expect(await call(["wait", "free", "-q"])).toEqual({ code: 0, stdout: "", stderr: "" });
    await holder("dead").acquire("import", { leaseDurationMs: 10_000 });
    await clock.advance(12_000);
    expect((await call(["wait", "import"])).code).toBe(0);
  });

  it.each(["--for", "--timeout"])(
    "ends with 75 when the time of %s is over, after a last look",
    async (flag) => {
      const { call, clock, holder } = lockTable();
      await holder("worker").acquire("deploy/prod", { heartbeat: true });
      const called = call(["wait", "deploy/prod", flag, "2500ms"]);
      await clock.advance(10_000);
      const { code, stderr } = await called;
      expect(code).toBe(75);
      expect(stderr).toBe("deploy/prod is still held by worker, after 2.5s\n");
    },
  );

  it("ends with 69 where nothing was learnt until the time is over, and calls nothing free", async () => {
    const { store, clock } = lockTable();
    const dead = changedStore(store, {
      query: async () => {
        throw new LeaseServiceError("LEASE_NO_ANSWER", "no answer");
      },
    });
    const called = leasehold(["wait", "deploy/prod", "--for", "5s"], { store: dead, clock });
    await clock.advance(20_000);
    const { code, stderr } = await called;
    expect(code).toBe(69);
    expect(stderr).toContain("nothing is known of deploy/prod: no answer in");
    expect(stderr).not.toContain("free");
  });

  it("ends a second after its time at the latest where the service hangs", async () => {
    const { store, clock } = lockTable();
    const asked: AbortSignal[] = [];
    const hanging = changedStore(store, {
      query: (_request, { signal }) => {
        asked.push(signal);
        return new Promise(() => undefined);
      },
    });
    let code: number | undefined;
    const called = leasehold(["wait", "deploy/prod", "--for", "3s"], { store: hanging, clock });
    void called.then((ended) => {
      code = ended.code;
    });
    await clock.advance(2_999);
    expect(code).toBeUndefined();
    await clock.advance(1_001);
    await vi.waitFor(() => expect(code).toBe(69));
    // A process would wait for what is still under way.
    expect(asked.map(({ aborted }) => aborted)).toEqual(asked.map(() => true));
    expect(asked.length).toBeGreaterThan(0);
    await clock.advance(60_000);
  });

  it("waits until somebody has it, or until an owner is gone", async () => {
    const { call, clock, holder } = lockTable();
    const held = call(["wait", "import", "--until", "held"]);
    await clock.advance(2_000);
    const lease = await holder("bob@ci-7").acquire("import");
    await clock.advance(1_000);
    expect((await held).code).toBe(0);
    const gone = call(["wait", "import", "--until", "gone-owner=bob@*"]);
    await clock.advance(1_000);
    await lease.release();
    await holder("alice").acquire("import");
    await clock.advance(1_000);
    expect((await gone).code).toBe(0);
  });

  it("takes a semaphore for free while it has a permit left", async () => {
    const { call, holder } = lockTable();
    const semaphore = new Semaphore(holder("worker"), "payment-api", { permits: 2 });
    await semaphore.acquire();
    expect((await call(["wait", "payment-api", "--for", "0"])).code).toBe(0);
    await semaphore.acquire();
    expect((await call(["wait", "payment-api", "--for", "0"])).code).toBe(75);
  });
});

it.each([
  "wait k --for 1s",
  "get k",
  "get k --json",
  "stop k --yes",
  "break k --yes --reason r",
  "resume k",
  "acquire k",
])("%s calls no key free whose lease another program has written, and cannot be read", async (line) => {
  const store = new MemoryLeaseStore();
  put(store, "k", "lease", { ...heldLease, [attributeNames.owner]: 7 });
  const { code, stderr } = await leasehold(line.split(" "), { store });
  expect([code, stderr]).toEqual([78, expect.stringContaining("cannot be read: its attribute owner is 7")]);
  expect(stderr).not.toMatch(/\n\s+at /);
});
