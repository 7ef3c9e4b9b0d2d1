/** The promises of the command line on machines whose clocks are wrong: the table's answers tell the right time. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { describe, expect, it } from "vitest";
import { type Called, leasehold } from "../support/command-line.ts";
import { stubChild } from "../support/stub-child.ts";
import {
  lapses,
  type Machine,
  WorldOfClocks,
  type WrongClock,
  wrongClocks,
} from "../support/wrong-clocks.ts";

const env = { PATH: process.env.PATH };

/** A call on a machine, and everybody else's clients beside it. */
function setUp(wrong: WrongClock) {
  const world = new WorldOfClocks();
  const machine: Machine = world.machine(wrong);
  const right = new LeaseClient({ store: world.store, clock: world.machine(), owner: "another host" });
  const call = (...args: string[]): Promise<Called> =>
    leasehold(args, { store: world.store, clock: machine, env });
  return { world, machine, right, call };
}

describe.each(wrongClocks)("on a machine whose clock is $name", (wrong) => {
  it.each(["run k", "tasks work orders"])(
    "%s keeps its lease for as long as its child runs, and lets the child work",
    async (command) => {
      const { world, machine, right, call } = setUp(wrong);
      const tasks = new TaskSet(right, "orders");
      await tasks.add([{ id: "1" }]);
      const takeAway = () => (command === "run k" ? right.tryAcquire("k") : tasks.claim());
      const { got, end, started } = stubChild(143);
      const called = call(...command.split(" "), "--lease", "30s", "--", "true");
      await started();
      await world.time.advance(20_000);
      expect(await takeAway()).toBeUndefined();
      await wrong.midway(machine);
      expect(await takeAway()).toBeUndefined();
      await world.time.advance(100_000);
      expect(await takeAway()).toBeUndefined();
      expect(got).toEqual([]);
      end(0);
      expect((await called).code).toBe(0);
      expect(await right.inspect("k")).toBeUndefined();
      if (command !== "run k")
        expect(await tasks.get("1")).toMatchObject({ state: "succeeded", attempts: 1 });
    },
  );

  it("acquire, check, renew and release hold a lock for somebody else's script", async () => {
    const { world, machine, right, call } = setUp(wrong);
    const folder = await mkdtemp(join(tmpdir(), "leasehold-clocks-"));
    try {
      const file = join(folder, "lease.json");
      expect((await call("acquire", "k", file, "--lease", "60s")).code).toBe(0);
      await world.time.advance(40_000);
      await wrong.midway(machine);
      expect((await call("check", file)).code).toBe(0);
      expect((await call("renew", file)).code).toBe(0);
      await world.time.advance(50_000);
      expect((await call("check", file)).code).toBe(0);
      expect(await right.tryAcquire("k")).toBeUndefined();
      expect((await call("release", file)).code).toBe(0);
      expect((await right.acquire("k")).held).toBe(true);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("audit and history show the time that --since says, and no other", async () => {
    const { world, right, call } = setUp(wrong);
    const operator = new LeaseOperator(right, { by: "alice" });
    const { token } = await right.acquire("k");
    await operator.stop("k", { token });
    await world.time.advance(2 * 3_600_000);
    await operator.pause("k", { forMs: 60_000, reason: "INC-7" });
    for (const args of [["audit"], ["audit", "k"], ["history", "k"]]) {
      const { stdout } = await call(...args, "--since", "1h", "--ndjson");
      expect(stdout.match(/"(action|what)":"[a-z]+"/g)).toEqual([expect.stringContaining("pause")]);
    }
  });

  it("jobs runs, missed and backfill count from DynamoDB's time", async () => {
    const { world, right, call } = setUp(wrong);
    const slotAt = (ms: number) => new Date(world.time.now() + ms).toISOString();
    await world.time.advance(600_000);
    await new JobRuns(right, "report").run(slotAt(-60_000), () => undefined);
    const range = ["report", "--since", "90m"];
    expect((await call("jobs", "runs", ...range, "-o", "key")).stdout).toBe(`${slotAt(-60_000)}\n`);
    const hourly = [...range, "--schedule", "rate(1 hour)"];
    const missed = `${slotAt(-4_200_000)}\n${slotAt(-600_000)}\n`;
    expect((await call("jobs", "missed", ...hourly, "-o", "key")).stdout).toBe(missed);
    expect((await call("jobs", "backfill", ...hourly, "--dry-run")).stdout).toBe(missed);
  });
});

describe.each(lapses)("on a machine that was $name", (lapse) => {
  it("run tells its child at once, and ends with 76", async () => {
    const { world, machine, call } = setUp(lapse);
    const { got, started } = stubChild(143);
    const called = call("run", "k", "--lease", "30s", "--", "true");
    await started();
    await world.time.advance(5_000);
    await lapse.midway(machine);
    await world.time.advance(25_000);
    expect(got[0]).toBe("SIGTERM");
    expect((await called).code).toBe(76);
  });

  it("tasks work tells its child at once, and the task is for others", async () => {
    const { world, machine, right, call } = setUp(lapse);
    const tasks = new TaskSet(right, "orders");
    await tasks.add([{ id: "1" }]);
    const { got, started } = stubChild(143);
    const called = call("tasks", "work", "orders", "--lease", "30s", "--until", "idle", "--", "true");
    await started();
    await world.time.advance(5_000);
    await lapse.midway(machine);
    await world.time.advance(25_000);
    expect(got[0]).toBe("SIGTERM");
    expect((await called).stdout).toContain("given back 1");
    // A step and a suspension look alike until the next answer: the pause before the next attempt may count from either.
    await world.time.advance(2 * 3_600_000);
    expect(await tasks.claim()).toMatchObject({ id: "1", attempt: 2 });
  });
});

it("a lock that cannot be released is said to stay held for as long as it does, whatever the clock shows", async () => {
  const world = new WorldOfClocks();
  const machine = world.machine({ wallMs: 10 * 60_000 });
  let isDown = false;
  const update: typeof world.store.update = async (request, call) => {
    if (isDown) throw Object.assign(new Error("down"), { name: "InternalServerError" });
    return await world.store.update(request, call);
  };
  const { end, started } = stubChild(143);
  const store = { ...world.store, update };
  const called = leasehold(["run", "k", "--lease", "10m", "--", "true"], { store, clock: machine, env });
  await started();
  isDown = true;
  end(0);
  const { stderr } = await called;
  expect(stderr).toMatch(/stays held until 2026-12-01 00:\d\d:\d\d UTC, 10m 00s from now/);
});
