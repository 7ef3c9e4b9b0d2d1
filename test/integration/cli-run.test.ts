// `leasehold run` in processes of its own: signals, dead parents, lost leases, exit codes.

import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LeaseClient } from "@leasehold/client";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { type CliProcess, cliOnTable } from "../support/cli-process.ts";
import { eventually } from "../support/patience.ts";
import { ProcessTree } from "../support/process-tree.ts";

const cli = cliOnTable();
let client: LeaseClient;
let key: string;

beforeAll(() => {
  client = cli.table.client();
});
beforeEach(() => {
  key = cli.table.newKey();
});

/** Runs a shell script under the test's key. */
function run(flags: readonly string[], script: string, env: NodeJS.ProcessEnv = {}): CliProcess {
  return cli.call(["run", key, ...flags, "--", "sh", "-c", script], env);
}

async function printed(call: CliProcess, text: string): Promise<void> {
  await eventually(() => expect(call.stdout + call.stderr).toContain(text));
}

/** Says that it is ready, and waits for ever. A signal to the group ends its `sleep`, and it goes on. */
const waitForEver = "echo ready; while :; do sleep 0.05; done";

describe("the command", () => {
  it("has stdin, stdout and stderr to itself, the lease in its environment, and its own exit code counts", async () => {
    const text = "x".repeat(300_000);
    const call = run([], 'cat; echo "$LEASEHOLD_KEY $LEASEHOLD_TABLE_NAME $LEASEHOLD_TOKEN" >&2; exit 7');
    call.process.stdin.end(text);
    expect(await call.ended).toBe(7);
    expect(call.stdout).toBe(text);
    expect(call.stderr).toMatch(new RegExp(`^${key} ${cli.table.tableName} [0-9a-f-]{36}\n$`));
    expect(await client.inspect(key)).toBeUndefined();
  });

  it("that a signal has ended ends the call with 128 and the signal", async () => {
    expect(await run([], "kill -TERM $$").ended).toBe(143);
    expect(await run([], "kill -KILL $$").ended).toBe(137);
  });

  it("that is not there, or may not be run, is known before anything is sent", async () => {
    const nowhere = { AWS_ENDPOINT_URL_DYNAMODB: "http://127.0.0.1:1" };
    const missing = cli.call(["run", key, "--", "no-such-command"], nowhere);
    expect(await missing.ended).toBe(127);
    expect(missing.stderr).toBe("leasehold: no-such-command: not found\n");
    const file = join(cli.folder, "plain.txt");
    await writeFile(file, "echo no");
    expect(await cli.call(["run", key, "--", file], nowhere).ended).toBe(126);
  });

  it("finds its lease released when it has failed to start", async () => {
    const file = join(cli.folder, "broken");
    await writeFile(file, "#!/no/such/interpreter\n", { mode: 0o755 });
    expect(await cli.call(["run", key, "--", file]).ended).toBe(127);
    expect(await client.inspect(key)).toBeUndefined();
  });
});

describe("a key that another holds", () => {
  it("ends the call with 75, -E's code, or 0 with --skip-ok, and says who holds it", async () => {
    const lease = await client.acquire(key, { owner: "bob@ci-7 (cli)", data: { cmd: "deploy.sh --tag 1" } });
    const call = run([], "echo no");
    expect(await call.ended).toBe(75);
    expect(call.stderr).toMatch(
      /^leasehold: lock-\d+ is held by bob@ci-7 \(cli\) for \S+, "deploy.sh --tag 1"; --wait DUR waits for it\n$/,
    );
    expect(await run(["-E", "9"], "echo no").ended).toBe(9);
    const skipped = run(["--skip-ok"], "echo no");
    expect(await skipped.ended).toBe(0);
    expect(skipped.stderr).toMatch(/nothing to do\n$/);
    expect(skipped.stdout).toBe("");
    await lease.release();
  });

  it("is told from one that an operator has paused", async () => {
    expect(await cli.call(["pause", key, "--for", "1h", "--reason", "INC-4411", "--yes"]).ended).toBe(0);
    const call = run([], "echo no");
    expect(await call.ended).toBe(75);
    expect(call.stderr).toMatch(/is paused by alice@.* until .* UTC, "INC-4411"; --wait DUR waits for it\n$/);
  });

  it("is waited for with --wait, and the call tells for whom, and when it has it", async () => {
    const lease = await client.acquire(key, { owner: "bob", leaseDurationMs: 60_000 });
    const call = run(["--wait", "10m"], "exit 3");
    await printed(call, "waiting up to 10m 00s");
    await lease.release();
    expect(await call.ended).toBe(3);
    expect(call.stderr).toMatch(/is held by bob for .*; waiting up to 10m 00s …\n/);
    expect(call.stderr).toMatch(/acquired after \S+ \(fencing token \d+\)\n/);
    expect(call.stderr).toMatch(/released after \S+; child exited 3\n$/);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)(
    "is waited for until %s, which ends the call with %i and leaves nothing behind",
    async (signal, code) => {
      const lease = await client.acquire(key, { leaseDurationMs: 60_000 });
      const call = run(["--wait", "10m", "--fair"], "echo no");
      await printed(call, "number 1 in line");
      call.process.kill(signal);
      expect(await call.ended).toBe(code);
      expect(call.stdout).toBe("");
      await lease.release();
      expect(await run(["--fair"], "echo mine").ended).toBe(0);
    },
  );
});

describe("signals", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)(
    "%s goes on to the child and to what it has started, once",
    async (signal) => {
      const name = signal.slice(3);
      const inner = `trap "echo inner; exit 0" ${name}; ${waitForEver}`;
      const call = run([], `trap "echo outer; exit 5" ${name}; sh -c '${inner}'; exit 6`);
      await printed(call, "ready");
      call.process.kill(signal);
      expect(await call.ended).toBe(5);
      expect(call.stdout.split("\n").sort()).toEqual(["", "inner", "outer", "ready"]);
      expect(await client.inspect(key)).toBeUndefined();
    },
  );

  it("that the child ignores do not end the call: it goes on until the child ends", async () => {
    const call = run([], `trap "" INT; trap "exit 4" USR1; ${waitForEver}`);
    await printed(call, "ready");
    call.process.kill("SIGINT");
    call.process.kill("SIGUSR1");
    expect(await call.ended).toBe(4);
  });

  it("SIGKILL to the call kills the child and all that it has started", async () => {
    const call = run(
      [],
      `trap "" TERM HUP; sh -c 'trap "" TERM HUP; ${waitForEver}' & while :; do sleep 0.05; done`,
    );
    await printed(call, "ready");
    const tree = new ProcessTree(call.pid);
    tree.look();
    expect(tree.seen.length).toBeGreaterThan(2);
    call.process.kill("SIGKILL");
    expect(await call.ended).toBe("SIGKILL");
    await eventually(() => expect(tree.survivors()).toEqual([]));
  });
});

describe("a lease that is lost", () => {
  /** Breaks the lease that a call holds, as an operator does. */
  async function breakIt(): Promise<void> {
    const token = (await client.inspect(key))?.token ?? "";
    expect(await adminOf(client).forceRelease(key, { token })).toBe(true);
  }

  it("is told to the child by SIGTERM and by the pipe of --fd, and ends the call with 76", async () => {
    const script = `(trap "" TERM; cat <&3; echo closed) & trap "echo told; wait; exit 0" TERM; ${waitForEver}`;
    const call = run(["--lease", "8s", "--fd", "3", "--slot", "one"], script);
    await printed(call, "ready");
    await breakIt();
    expect(await call.ended).toBe(76);
    expect(call.stdout.split("\n").sort()).toEqual(["", "closed", "ready", "told"]);
    expect(call.stderr).toMatch(/leasehold: LOST lock-\d+ \(\w+: [^)]+\): sending SIGTERM to the child\n/);
    expect(call.stderr).toMatch(/another holder may be at work now; the child exited \d+. Exit 76.\n$/);
    expect(await client.doneSlot(key)).toBeUndefined();
  });

  it("kills a child that ignores SIGTERM, and what it has left behind, after --kill-after", async () => {
    const stubborn = `trap "" TERM; ${waitForEver}`;
    const call = run(["--lease", "8s", "--kill-after", "200ms"], `sh -c '${stubborn}' & ${stubborn}`);
    await printed(call, "ready");
    await breakIt();
    expect(await call.ended).toBe(76);
    expect(call.stderr).toContain("has not ended after 200ms: sending SIGKILL to it");

    const leftBehind = run(["--lease", "8s", "--kill-after", "200ms"], `sh -c '${stubborn}' & sleep 600`);
    await printed(leftBehind, "ready");
    await breakIt();
    // All of its output is read only when nobody has its end of the pipe any more.
    expect(await leftBehind.ended).toBe(76);
  });
});

describe("--slot", () => {
  it("runs once for a slot on any number of hosts; a run that failed leaves it open", async () => {
    const failed = run(["--slot", "2026-11-22", "--owner", "host-1"], "exit 1");
    expect(await failed.ended).toBe(1);
    const flags = ["--slot", "2026-11-22", "--wait", "5m", "--skip-ok"];
    const hosts = ["host-1", "host-2"].map((owner) =>
      run([...flags, "--owner", owner], "echo $LEASEHOLD_SLOT"),
    );
    expect(await Promise.all(hosts.map(({ ended }) => ended))).toEqual([0, 0]);
    expect(hosts.map(({ stdout }) => stdout).sort()).toEqual(["", "2026-11-22\n"]);
    const late = run(["--slot", "2026-11-22"], "echo no");
    expect(await late.ended).toBe(80);
    expect(late.stderr).toMatch(
      /^leasehold: the slot 2026-11-22 of lock-\d+ is done since [-\d]+ [:\d]+ UTC \(host-[12]\); nothing to do\n$/,
    );
    expect(await run(["--slot", "2026-11-22", "--done-exit", "0"], "echo no").ended).toBe(0);
  });
});

it("--at-least keeps the lock closed after the child has ended", async () => {
  expect(await run(["--at-least", "1m", "--lease", "1m"], "exit 0").ended).toBe(0);
  const call = run([], "echo no");
  expect(await call.ended).toBe(75);
  expect(call.stderr).toMatch(/is closed until .* UTC after alice@/);
});

describe.skipIf(!existsSync("/dev/full"))("a full disk", () => {
  it.each(["ls", "--help", "version"])("is told, and ends leasehold %s with 74", async (args) => {
    const call = cli.shell(`leasehold ${args} > /dev/full`);
    expect([await call.ended, call.stderr]).toEqual([
      74,
      expect.stringContaining("stdout cannot be written: ENOSPC"),
    ]);
  });
});

describe("leasehold acquire", () => {
  it.skipIf(!existsSync("/dev/full"))(
    "releases the lease again where its handle cannot be written",
    async () => {
      const call = cli.shell(`leasehold acquire ${key} > /dev/full`);
      expect([await call.ended, call.stderr]).toEqual([
        74,
        expect.stringMatching(
          /the handle of lock-\d+ could not be written: .*ENOSPC.*; it is released again\n$/,
        ),
      ]);
      expect(await client.inspect(key)).toBeUndefined();
    },
  );

  it("makes the file of a redirection its owner's alone, and the lease outlives the process", async () => {
    const file = join(cli.folder, key);
    await cli.shell(`umask 022; leasehold acquire ${key} > "${file}"`).ended;
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await client.inspect(key))?.token).toBe(JSON.parse(await readFile(file, "utf8")).token);
    expect(await cli.call(["release", file]).ended).toBe(0);
  });
});

describe("--reentrant", () => {
  it("lets a nested call use the lease of the call around it, which keeps it until its own end", async () => {
    const inner = `"${process.execPath}" "${cli.main}" run ${key}`;
    const call = run(
      [],
      `${inner} -- echo no; ${inner} --reentrant -- sh -c 'echo inner; exit 6'; echo "code $?"`,
    );
    expect(await call.ended).toBe(0);
    expect(call.stdout).toBe("inner\ncode 6\n");
    expect(await client.inspect(key)).toBeUndefined();
  });
});
