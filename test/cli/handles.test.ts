import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { leasehold, startLeasehold } from "../support/command-line.ts";

let folder: string;
let file: string;
let store: MemoryLeaseStore;
let clock: ManualClock;
let client: LeaseClient;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-handles-"));
  file = join(folder, "lease.json");
  clock = new ManualClock();
  store = new MemoryLeaseStore();
  client = new LeaseClient({ store, clock });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const call = (...args: string[]) => leasehold(args, { store, clock });

describe("leasehold acquire", () => {
  it("leaves the lock held, by a handle that only its owner can read", async () => {
    const { code, stdout } = await call("acquire", "deploy", file, "--lease", "5m");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    const text = await readFile(file, "utf8");
    const handle = JSON.parse(text);
    // None of the room that was made for it is left.
    expect(text).toBe(`${JSON.stringify(handle)}\n`);
    expect(await client.inspect("deploy")).toMatchObject({ token: handle.token, leaseDurationMs: 300_000 });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["lease.json"]);
  });

  it("prints the handle where no file is named", async () => {
    const { stdout } = await call("acquire", "deploy");
    expect(JSON.parse(stdout).token).toBe((await client.inspect("deploy"))?.token);
  });

  it("acquires nothing where the file cannot be made", async () => {
    const { code, stderr } = await call("acquire", "deploy", join(folder, "no", "lease.json"));
    expect(code).toBe(74);
    expect(stderr).toContain("is there a folder");
    expect(await client.inspect("deploy")).toBeUndefined();
  });

  it("keeps an older handle, and leaves no other file, where another holds the lock", async () => {
    await writeFile(file, "older");
    await client.acquire("deploy", { owner: "bob" });
    const { code, stderr } = await call("acquire", "deploy", file);
    expect(code).toBe(75);
    expect(stderr).toContain("deploy is held by bob");
    expect(await readFile(file, "utf8")).toBe("older");
    expect(await readdir(folder)).toEqual(["lease.json"]);
  });

  it("never takes the place of a handle whose lease is held: nobody could release it", async () => {
    expect((await call("acquire", "first", file)).code).toBe(0);
    const handle = await readFile(file, "utf8");
    const { code, stderr } = await call("acquire", "second", file);
    expect([code, stderr]).toEqual([
      74,
      expect.stringContaining("has the handle of first, which may be held for"),
    ]);
    expect(await readFile(file, "utf8")).toBe(handle);
    expect(await client.inspect("second")).toBeUndefined();
    expect(await readdir(folder)).toEqual(["lease.json"]);
    // Nor of a permit of the same semaphore.
    const permits = join(folder, "permit.json");
    expect((await call("acquire", "third", permits, "--permits", "2")).code).toBe(0);
    expect((await call("acquire", "third", permits, "--permits", "2")).code).toBe(74);
  });

  it("takes the place of a handle whose lease is over, released or broken", async () => {
    for (const end of [
      async () => void (await call("release", file)),
      async () => await clock.advance(60_000),
      async () => {
        const { key, token } = JSON.parse(await readFile(file, "utf8"));
        await adminOf(client).forceRelease(key, { token });
      },
    ]) {
      expect((await call("acquire", "first", file)).code).toBe(0);
      await end();
      expect((await call("acquire", "second", file)).code).toBe(0);
      expect(JSON.parse(await readFile(file, "utf8")).key).toBe("second");
      await call("release", file);
    }
  });

  it("waits for its own earlier lease of the key, and takes the place of that handle", async () => {
    expect((await call("acquire", "first", file, "--lease", "10s")).code).toBe(0);
    expect((await call("acquire", "first", file)).code).toBe(75);
    const waiting = call("acquire", "first", file, "--wait", "1m");
    for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
    expect((await waiting).code).toBe(0);
  });

  it.each([
    ["no file yet", () => undefined],
    [
      "a handle whose lease is over",
      async () => {
        await call("acquire", "first", file);
        await clock.advance(60_000);
      },
    ],
  ])(
    "keeps one of two handles that are acquired into one file at once, and releases the other lease: %s",
    async (_, before) => {
      await before();
      const keys = ["a", "b"];
      const calls = await Promise.all(keys.map((key) => call("acquire", key, file)));
      expect(calls.map(({ code }) => code).sort()).toEqual([0, 74]);
      const held = await Promise.all(keys.map((key) => client.inspect(key)));
      const { key, token } = JSON.parse(await readFile(file, "utf8"));
      expect(held.flatMap((lease) => (lease ? [[lease.key, lease.token]] : []))).toEqual([[key, token]]);
      expect(await readdir(folder)).toEqual(["lease.json"]);
    },
  );

  it.each([
    ["another process has written the file meanwhile", () => writeFile(file, "of another"), "has written it"],
    ["the file cannot be put in its place", () => mkdir(file, { recursive: true }), "EISDIR"],
  ])("releases again, and leaves no draft, where %s", async (_, spoil, reason) => {
    const update = store.update.bind(store);
    store.update = async (request, options) => {
      await spoil();
      return await update(request, options);
    };
    const { code, stderr } = await call("acquire", "deploy", file);
    expect([code, stderr]).toEqual([74, expect.stringMatching(`${reason}.*; it is released again`)]);
    expect(await client.inspect("deploy")).toBeUndefined();
    expect(await readdir(folder)).toEqual(["lease.json"]);
  });

  it.each(["acquire", "renew"])("%s puts no file in the place of a pipe or a device", async (name) => {
    execFileSync("mkfifo", [file]);
    const args = name === "renew" ? [name, file] : [name, "deploy", file];
    const { code, stderr } = await call(...args);
    expect([code, stderr]).toEqual([74, expect.stringContaining("is no file")]);
    expect((await stat(file)).isFIFO()).toBe(true);
    expect(await client.inspect("deploy")).toBeUndefined();
  });

  it.runIf(process.platform === "linux")(
    "acquires nothing where stdout's file cannot be made private",
    async () => {
      // The system's own file: nobody may change its mode.
      const file = await open("/proc/self/status");
      const stdout = Object.assign(new PassThrough(), { fd: file.fd });
      const { ended, printed } = startLeasehold(["acquire", "deploy"], { store, clock, stdout });
      expect([await ended, printed.stderr]).toEqual([
        74,
        expect.stringContaining("cannot protect stdout (EPERM)"),
      ]);
      await file.close();
      expect(await client.inspect("deploy")).toBeUndefined();
    },
  );

  it("sends and writes nothing with --dry-run", async () => {
    const { code, stdout } = await call("acquire", "deploy", file, "--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain('"update"');
    expect(await readdir(folder)).toEqual([]);
    expect(await client.inspect("deploy")).toBeUndefined();
  });

  it("writes a handle of a semaphore's permit, a reader and a writer", async () => {
    const kinds = { "--permits 2": "permit", "--read": "read", "--write": "write" };
    for (const [flags, kind] of Object.entries(kinds)) {
      const key = `with ${flags}`;
      expect((await call("acquire", key, file, ...flags.split(" "))).code).toBe(0);
      expect(await adminOf(client).inspectAll(key)).toMatchObject([{ seat: { kind } }]);
      expect((await call("check", file)).code).toBe(0);
      expect((await call("renew", file)).code).toBe(0);
      expect((await call("release", file)).code).toBe(0);
      expect((await call("check", file)).code).toBe(76);
    }
  });
});

describe("leasehold renew, check and release", () => {
  it("prolong, look at and end the lease of a handle, from another process", async () => {
    await call("acquire", "deploy", file, "--lease", "60s");
    await clock.advance(50_000);
    expect((await call("renew", file)).code).toBe(0);
    await clock.advance(50_000);
    const checked = await call("check", file, "--json");
    expect(checked.code).toBe(0);
    expect(JSON.parse(checked.stdout)).toMatchObject({ key: "deploy", held: true });
    expect((await call("release", file)).code).toBe(0);
    expect(await client.inspect("deploy")).toBeUndefined();
    const again = await call("check", file);
    expect(again).toMatchObject({ code: 76, stdout: "deploy: not held any more\n" });
  });

  it("end with 76, and change nothing, where another has the lock by now", async () => {
    await call("acquire", "deploy", file, "--lease", "10s");
    await clock.advance(20_000);
    expect((await call("check", file)).stdout).toContain("EXPIRED");
    const next = await client.acquire("deploy", { owner: "bob" });
    const before = await readFile(file, "utf8");
    expect((await call("renew", file)).code).toBe(76);
    expect(await readFile(file, "utf8")).toBe(before);
    expect(await call("check", file)).toMatchObject({ code: 76, stdout: "deploy: held by bob now\n" });
    expect((await call("release", file)).code).toBe(76);
    expect((await client.inspect("deploy"))?.token).toBe(next.token);
    expect(await readdir(folder)).toEqual(["lease.json"]);
  });

  it("--complete records the slot as done; without a slot it is refused", async () => {
    await call("acquire", "nightly", file, "--slot", "2026-11-22");
    expect((await call("release", file, "--complete")).code).toBe(0);
    expect(await client.doneSlot("nightly")).toBe("2026-11-22");
    await call("acquire", "deploy", file);
    expect(await call("release", file, "--complete")).toMatchObject({ code: 64 });
    expect(await client.inspect("deploy")).toBeDefined();
  });

  it("refuse a file that is no handle, and one that is not there", async () => {
    await writeFile(file, "{}");
    expect((await call("check", file)).code).toBe(64);
    expect((await call("check", join(folder, "none"))).code).toBe(74);
  });
});
