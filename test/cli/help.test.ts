import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { texts } from "../../packages/cli/src/error-texts.ts";
import { errorTexts } from "../../tools/packaging/error-page.ts";
import { leasehold } from "../support/command-line.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

describe("leasehold help", () => {
  it("has the texts of docs/errors.md: after a change there, npm run generate -- error-texts", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/errors.md"), "utf8");
    expect(texts).toEqual(errorTexts(page));
    expect(Object.keys(texts).length).toBeGreaterThan(25);
  });

  it("says what a code means, in any case of letters, and where more is said", async () => {
    const { code, stdout } = await leasehold(["help", "errors", "lease_unavailable"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^LEASE_UNAVAILABLE\n/);
    expect(stdout).toContain("- Means: another caller holds the lock");
    expect(stdout).toMatch(/see https:\S+\/docs\/errors\.md#lease_unavailable\n$/);
    expect(stdout).not.toMatch(/\*\*|\]\(/);
  });

  it("lists the codes, and suggests the nearest one", async () => {
    const listed = await leasehold(["help", "errors"]);
    expect(listed.stdout.trim().split("\n")).toEqual(Object.keys(texts));
    const { code, stderr } = await leasehold(["help", "errors", "LEASE_UNAVAILABEL"]);
    expect([code, stderr]).toEqual([64, expect.stringContaining("did you mean LEASE_UNAVAILABLE?")]);
  });

  it("says what a command does, as --help does", async () => {
    const one = await leasehold(["help", "table", "create"]);
    expect(one).toEqual(await leasehold(["table", "create", "--help"]));
    expect((await leasehold(["help"])).stdout).toBe((await leasehold(["--help"])).stdout);
    expect((await leasehold(["help", "lss"])).code).toBe(64);
  });

  it("has the flags of every command once, in the list of commands", async () => {
    const flag = /^ +--read-only +refuse every command that writes/m;
    expect((await leasehold(["--help"])).stdout).toMatch(flag);
    const { stdout } = await leasehold(["ls", "--help"]);
    expect(stdout).not.toMatch(flag);
    expect(stdout).toContain("leasehold --help has the flags of every command.");
  });

  it("names the second words of a command that needs one", async () => {
    const { code, stderr } = await leasehold(["table"]);
    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining("table needs a second word: table create, table show"),
    ]);
  });
});

describe("leasehold completion", () => {
  const script = async (shell: string): Promise<string> => (await leasehold(["completion", shell])).stdout;

  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

  /** What bash would offer for the last of these words. */
  async function offered(...words: string[]): Promise<string[]> {
    const line = ["leasehold", ...words].map(quoted).join(" ");
    const program = `${await script("bash")}
COMP_LINE=${quoted(["leasehold", ...words].join(" "))}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _leasehold; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["--norc", "-c", program], { encoding: "utf8" });
    return output.split("\n").filter((word) => word !== "");
  }

  it("offers every command's first word in bash", async () => {
    const firsts = [...new Set(Object.keys(commands).map((name) => name.split(" ")[0]))];
    expect(await offered("")).toEqual(expect.arrayContaining(firsts));
    expect(await offered("vers")).toEqual(["version"]);
  });

  it.each([
    [["table", "cr"], ["create"]],
    [["table", "create", "--pi"], ["--pitr"]],
    [["-t", "leases", "doctor", "--str"], ["--strict"]],
    [["ls", "--outp"], ["--output"]],
    [["ls", "-o", "nd"], ["ndjson"]],
    [["dev", "--engine", "dynox"], ["dynoxide"]],
    [["ls", "--table", ""], []],
    [["run", "key", "--", "--outp"], []],
    [["nothing", "--x"], []],
  ])("offers for %j in bash: %j", async (words, expected) => {
    expect(await offered(...words)).toEqual(expected);
  });

  /** What bash would insert for a line, where the table has these names. */
  async function inserted(line: string, words: readonly string[], names: readonly string[]) {
    const program = `${await script("bash")}
leasehold() { printf '%s\n' "asked: $*" >&3; printf '%s\n' ${names.map(quoted).join(" ")}; }
COMP_LINE=${quoted(line)}; COMP_WORDS=(${words.map(quoted).join(" ")}); COMP_CWORD=${words.length - 1}
_leasehold 3>&1; printf '%s\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["--norc", "-c", program], { encoding: "utf8" })
      .trimEnd()
      .split("\n");
    const asked = output.filter((one) => one.startsWith("asked: "));
    return { asked, inserted: output.filter((one) => one !== "" && !asked.includes(one)) };
  }

  it.each([
    ["leasehold get ord", ["leasehold", "get", "ord"], ["orders/close"], ["orders/close"]],
    ["leasehold break my", ["leasehold", "break", "my"], ["my key"], ["my\\ key"]],
    ["leasehold break 'my", ["leasehold", "break", "'my"], ["my key", "it's"], ["my key"]],
    ['leasehold stop "', ["leasehold", "stop", '"'], ["a b", 'q"', "$(id)", "`id`"], ["a b"]],
    ["leasehold get $", ["leasehold", "get", "$"], ["$(touch owned)"], ["\\$\\(touch\\ owned\\)"]],
    ["leasehold get t:4", ["leasehold", "get", "t", ":", "4"], ["t:42"], ["42"]],
    ["leasehold jobs missed n", ["leasehold", "jobs", "missed", "n"], ["night"], ["night"]],
    ["leasehold jobs r", ["leasehold", "jobs", "r"], ["report"], ["runs", "run", "report"]],
    ["leasehold get k ", ["leasehold", "get", "k", "--js"], ["no"], ["--json"]],
    ["leasehold get --js", ["leasehold", "get", "--js"], ["no"], ["--json"]],
  ])(
    "completes the names of the table for %j in bash, as words that run nothing",
    async (line, words, names, expected) => {
      expect((await inserted(line, words, names)).inserted).toEqual(expected);
    },
  );

  it("asks the table in bash only where a name may stand, and with the words as they are meant", async () => {
    const asked = async (line: string, ...words: string[]) =>
      (await inserted(line, ["leasehold", ...words], [])).asked;
    expect(await asked("leasehold get t:4", "get", "t", ":", "4")).toEqual([
      "asked: completion names -- get t:4",
    ]);
    expect(await asked("leasehold get my\\ k", "get", "my\\ k")).toEqual([
      "asked: completion names -- get my k",
    ]);
    expect(await asked("leasehold get a b", "get", "a", "b")).toEqual([]);
    expect(await asked("leasehold get -", "get", "-")).toEqual([]);
    expect(await asked("leasehold version ", "version", "")).toEqual([]);
  });

  it("has a script for zsh and for fish, with every command", async () => {
    const [zsh, fish] = [await script("zsh"), await script("fish")];
    expect(zsh).toMatch(/^#compdef leasehold\n/);
    for (const name of Object.keys(commands)) {
      expect(zsh).toContain(`    '${name}') _leasehold_words=`);
      expect(fish).toContain(`-a '${name.split(" ").at(-1)}' -d '`);
    }
    expect(fish).toContain("-l pitr -d 'point-in-time recovery");
  });

  describe("names", () => {
    const store = new MemoryLeaseStore();
    // Its time stands still: the limit of the whole look would end the process.
    const clock = new ManualClock(Date.now());
    const names = async (...words: string[]) =>
      (await leasehold(["completion", "names", "--", ...words], { store, clock })).stdout
        .split("\n")
        .slice(0, -1);
    beforeAll(async () => {
      const client = new LeaseClient({ store, clock });
      for (const key of ["orders/b", "orders/a", "my key", "bell\u0007", "line\nbreak"])
        await client.acquire(key);
      await new JobRuns(client, "nightly", { schedule: "rate(1 day)" }).run(
        new Date(clock.now() - 1_000),
        () => 1,
      );
      await new TaskSet(client, "set/one").add([{ id: "1", payload: 1 }]);
    });

    it.each([
      [
        ["get", ""],
        ["my key", "orders/a", "orders/b"],
      ],
      [
        ["break", "ord"],
        ["orders/a", "orders/b"],
      ],
      [["run", "--wait", "10m", "my"], ["my key"]],
      [["-t", "leases", "history", "orders/b"], ["orders/b"]],
      [["jobs", ""], ["nightly"]],
      [["jobs", "missed", "n"], ["nightly"]],
      [["tasks", "ls", "s"], ["set/one"]],
      [["tasks", "drop", "set/one", ""], []],
      [["get", "my key", ""], []],
      [["version", ""], []],
      [["constructor", ""], []],
      [["get", "-"], []],
      [[], []],
    ])("for %j are %j", async (words, expected) => {
      expect(await names(...words)).toEqual(expected);
    });

    it("are not looked for where no table is named, because finding it takes many requests", async () => {
      const env = { LEASEHOLD_TABLE_NAME: "" };
      expect(await leasehold(["completion", "names", "--", "get", ""], { env, clock })).toEqual({
        ...{ code: 0, stdout: "", stderr: "" },
      });
    });

    it("cost 1 request", async () => {
      const { stderr } = await leasehold(["completion", "names", "-v", "--", "get", ""], { store, clock });
      expect(stderr).toMatch(/^1 request: 1 scan/);
    });

    it("are none of a table that does not answer within a second", async () => {
      const silent = new ScriptedStore();
      silent.scan = (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const { code, stdout } = await leasehold(["completion", "names", "--", "get", ""], {
        store: silent,
        clock,
      });
      expect(code).not.toBe(0);
      expect(stdout).toBe("");
    });
  });

  it("refuses a shell that it does not know", async () => {
    const { code, stderr } = await leasehold(["completion", "csh"]);
    expect([code, stderr]).toEqual([64, 'leasehold: "csh" has no completion; allowed: bash, zsh, fish\n']);
  });
});
