// `leasehold run` in a real terminal: the child may use it, and Ctrl-C reaches each of the two once.

import { execFileSync, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cliOnTable } from "../support/cli-process.ts";
import { eventually } from "../support/patience.ts";

const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
const socket = `leasehold-${process.pid}`;

function tmux(...args: string[]): string {
  return execFileSync("tmux", ["-L", socket, ...args], { encoding: "utf8" });
}

/** What the terminal shows, without what was typed. */
const screen = (): string => tmux("capture-pane", "-p", "-J");

it.runIf(process.env.CI === "1")("finds tmux where nothing may be left out", { tags: ["long"] }, () => {
  expect(hasTmux).toBe(true);
});

describe.skipIf(!hasTmux)("leasehold run in a terminal", { tags: ["long"] }, () => {
  const cli = cliOnTable();
  beforeAll(() => {
    tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50", "env PS1='> ' sh");
  });
  afterAll(() => {
    spawnSync("tmux", ["-L", socket, "kill-server"]);
  });

  /** Runs a script under a lease in the terminal; the file keeps it off the screen. */
  async function run(key: string, script: string): Promise<void> {
    const env = Object.entries(cli.environment())
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}='${value}'`)
      .join(" ");
    const file = join(cli.folder, `${key}.sh`);
    const call = `env ${env} '${process.execPath}' '${cli.main}' run ${key} -- sh '${file}.child'`;
    await writeFile(`${file}.child`, script);
    await writeFile(file, `clear; ${call}; echo "ended with $?"\n`);
    tmux("send-keys", `. '${file}'`, "Enter");
  }

  it("the child reads from the terminal, gets Ctrl-C once, and its exit code counts", async () => {
    await run(
      "typing",
      `
      trap 'echo got-INT' INT
      trap 'echo got-TERM; exit 3' TERM
      echo "$$ is ready"; read -r line < /dev/tty; echo "read <$line>"
      while :; do sleep 0.05; done`,
    );
    await eventually(() => expect(screen()).toMatch(/^\d+ is ready$/m));
    tmux("send-keys", "hello", "Enter");
    await eventually(() => expect(screen()).toContain("read <hello>"));
    tmux("send-keys", "C-c");
    await eventually(() => expect(screen()).toContain("got-INT"));
    const pid = Number(/^(\d+) is ready$/m.exec(screen())?.[1]);
    const parent = Number(execFileSync("ps", ["-o", "ppid=", "-p", String(pid)], { encoding: "utf8" }));
    process.kill(parent, "SIGTERM");
    await eventually(() => expect(screen()).toContain("ended with 3"));
    expect(screen().match(/got-INT/g)).toHaveLength(1);
    expect(screen().match(/got-TERM/g)).toHaveLength(1);
    expect(screen()).toMatch(/leasehold: typing acquired \(fencing token \d+\)/);
    expect(screen()).toMatch(/leasehold: released after \S+; child exited 3/);
  });

  it("SIGKILL to the call kills the child and what it has started, and nothing else of the terminal's group", async () => {
    await run("killed", "trap '' INT TERM HUP; sleep 3600 & echo \"$$ and $! run\"; wait; sleep 3600");
    await eventually(() => expect(screen()).toMatch(/^\d+ and \d+ run$/m));
    const pids = (/^(\d+) and (\d+) run$/m.exec(screen()) ?? []).slice(1).map(Number);
    const parent = Number(execFileSync("ps", ["-o", "ppid=", "-p", String(pids[0])], { encoding: "utf8" }));
    process.kill(parent, "SIGKILL");
    await eventually(() => expect(screen()).toContain("ended with 137"));
    const states = () =>
      spawnSync("ps", ["-o", "stat=", "-p", pids.join(",")], { encoding: "utf8" })
        .stdout.split("\n")
        .filter((state) => state !== "" && !state.startsWith("Z"));
    await eventually(() => expect(states()).toEqual([]));
  });
});
