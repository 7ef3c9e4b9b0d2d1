// Attacks of docs/security.md that no other test tries.
import { LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import type { CommandEntry } from "../../packages/cli/src/command.ts";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { globalFlags } from "../../packages/cli/src/flags.ts";
import { adminOf } from "../support/admin.ts";
import { leasehold } from "../support/command-line.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

const client = (owner: string): LeaseClient => new LeaseClient({ store, clock, owner });

/** A resource of the user's: an item that remembers the fencing token of its last writer. */
function writeFenced(fencingToken: number): boolean {
  const { applied } = store.table.updateNow({
    key: { pk: "report", sk: "report" },
    update: "SET #fence = :fence",
    condition: "(attribute_not_exists(#fence) OR #fence <= :fence)",
    names: { "#fence": "fence" },
    values: { ":fence": fencingToken },
    returnsItem: false,
  });
  return applied;
}

/** What somebody with UpdateItem on the key can do: set any attribute of the item. */
function tamper(key: string, attribute: string, value: string | number): void {
  store.table.updateNow({
    key: { pk: key, sk: "lease" },
    update: "SET #it = :it",
    condition: "attribute_exists(#pk)",
    names: { "#it": attribute, "#pk": "pk" },
    values: { ":it": value },
    returnsItem: false,
  });
}

describe("a forged handle", () => {
  it("with a larger fencing token renews, releases and proves nothing: token and fencing token have to fit", async () => {
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    const forged = client("thief").adopt({ ...lease.toJSON(), fencingToken: lease.fencingToken + 1_000 });
    await expect(forged.renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
    const { ConditionCheck: check } = forged.conditionCheck();
    expect(JSON.stringify(check)).toContain(String(lease.fencingToken + 1_000));
    expect(await forged.release()).toBe(false);
    await lease.renew();
    expect(lease.held).toBe(true);
  });

  it("with a guessed token changes nothing", async () => {
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    const forged = client("thief").adopt({ ...lease.toJSON(), token: crypto.randomUUID() });
    await expect(forged.renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await forged.release()).toBe(false);
    expect((await client("B").inspect("k"))?.token).toBe(lease.token);
  });
});

describe("a leaked handle", () => {
  it("renews and releases its own lease, and is worth nothing once that lease has been released or taken over", async () => {
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    const leaked = lease.toJSON();
    await client("thief").adopt(leaked).renew();
    await lease.release();
    await expect(client("thief").adopt(leaked).renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
    const later = await client("B").acquire("k", { leaseDurationMs: 60_000 });
    await expect(client("thief").adopt(leaked).renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
    await client("thief").adopt(leaked).release();
    expect((await client("C").inspect("k"))?.token).toBe(later.token);
  });
});

describe("an insider who may write the item", () => {
  it("takes the lock, and the holder learns of it at its next renewal and cannot write past the next holder", async () => {
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    expect(writeFenced(lease.fencingToken)).toBe(true);
    await adminOf(client("insider")).forceRelease("k", { token: lease.token });
    const next = await client("B").acquire("k");
    expect(writeFenced(next.fencingToken)).toBe(true);
    expect(writeFenced(lease.fencingToken)).toBe(false);
    await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(lease.signal.aborted).toBe(true);
  });

  it("who sets the fencing token back keeps later holders out of the resource, and lets no stale one in", async () => {
    const lease = await client("A").acquire("k");
    expect(writeFenced(lease.fencingToken)).toBe(true);
    await lease.release();
    tamper("k", "fence", 1);
    const next = await client("B").acquire("k");
    expect(next.fencingToken).toBeLessThan(lease.fencingToken);
    expect(writeFenced(next.fencingToken)).toBe(false);
  });

  it("who prolongs a lease in the table does not make its holder believe in it for longer", async () => {
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    tamper("k", "expiresAt", clock.now() + 86_400_000);
    await clock.advance(60_000);
    expect(lease.held).toBe(false);
  });
});

describe("a clock that lies", () => {
  /** The Date header of an attacker that answers in the service's place. */
  const lie = (aheadMs: number) => () => ({
    earliest: clock.now() + aheadMs,
    latest: clock.now() + aheadMs + 1_000,
  });

  it("of somebody between a client and the service opens a lock early, and the fence refuses the earlier holder", async () => {
    store.isLocal = false;
    store.time = lie(0);
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    expect(writeFenced(lease.fencingToken)).toBe(true);
    store.time = lie(3_600_000);
    const deceived = await client("B").acquire("k", { waitMs: 0 });
    expect(deceived.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(writeFenced(deceived.fencingToken)).toBe(true);
    expect(writeFenced(lease.fencingToken)).toBe(false);
  });

  it("moves no deadline of a holder beyond what its own monotonic clock shows", async () => {
    store.isLocal = false;
    store.time = lie(-3_600_000);
    const lease = await client("A").acquire("k", { leaseDurationMs: 60_000 });
    clock.jump(-3_600_000);
    await clock.advance(60_000);
    expect(lease.held).toBe(false);
  });

  it("does not matter where the allowance is infinite: takers watch for a whole lease by their own clock", async () => {
    store.isLocal = false;
    store.time = lie(0);
    await client("A").acquire("k", { leaseDurationMs: 60_000 });
    store.time = lie(3_600_000);
    const careful = new LeaseClient({ store, clock, owner: "B", clockSkewMs: Number.POSITIVE_INFINITY });
    await expect(careful.acquire("k")).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE" });
  });
});

describe.each(["__proto__", "constructor", "toString"])("the name %s, which every object has,", (name) => {
  it("is a key, an owner, a slot's job and a task like any other", async () => {
    const one = client(name);
    const lease = await one.acquire(name, { owner: name, data: { [name]: 1 }, heartbeat: true });
    expect(Object.keys(lease.data as object)).toEqual([name]);
    await expect(client("other").acquire(name)).rejects.toMatchObject({ holder: name });
    expect(await lease.release()).toBe(true);

    const semaphore = new Semaphore(one, name, { permits: 1 });
    await semaphore.acquire({ owner: name, reentrant: true });
    await expect(new Semaphore(client("other"), name, { permits: 1 }).acquire()).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
    });
    expect((await semaphore.inspect()).held.map(({ owner }) => owner)).toEqual([name]);

    const tasks = new TaskSet(one, name);
    await tasks.add([{ id: name, payload: { [name]: 1 } }]);
    const task = await tasks.claim();
    expect(task?.id).toBe(name);
    await task?.succeed();
    expect(await tasks.counts()).toMatchObject({ succeeded: 1 });
    expect(await new JobRuns(one, name).run("2025-12-31T23:00:00.000Z", () => "done")).toBe("done");
    expect(({} as Record<string, unknown>).data).toBeUndefined();
  });
});

describe("the command line", () => {
  const secret = /secret|password|credential|access-?key|auth-token$|session/i;

  it("takes no secret as a flag, which everybody on the machine could read: a file at most", async () => {
    const all = Object.entries(commands) as [string, CommandEntry][];
    const flags = await Promise.all(all.map(async ([, entry]) => Object.keys((await entry.load()).flags)));
    const names = [...flags.flat(), ...Object.keys(globalFlags)];
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => secret.test(name))).toEqual([]);
    expect(names).toContain("auth-token-file");
  });

  it.each(["bash", "zsh", "fish"])(
    "writes a completion for %s that runs nothing of the table: it has the words of the program alone",
    async (shell) => {
      const hostile = "$(touch owned)`id`";
      await client(hostile).acquire(hostile);
      const { stdout, code } = await leasehold(["completion", shell], { store: store.table });
      expect(code).toBe(0);
      expect(stdout).toContain("leasehold");
      expect(stdout).not.toContain("owned");
      expect(store.count("scan") + store.count("query")).toBe(0);
    },
  );
});
