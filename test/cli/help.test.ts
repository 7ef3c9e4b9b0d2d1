import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { texts } from "../../packages/cli/src/error-texts.ts";
import { errorTexts } from "../../tools/packaging/error-texts.ts";
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

  it("lists the codes", async () => {
    const listed = await leasehold(["help", "errors"]);
    expect(listed.stdout.trim().split("\n")).toEqual(Object.keys(texts));
  });

  it("says what a command does, as --help does", async () => {
    const one = await leasehold(["help", "table", "create"]);
    expect(one).toEqual(await leasehold(["table", "create", "--help"]));
    expect((await leasehold(["help"])).stdout).toBe((await leasehold(["--help"])).stdout);
  });

  it("has the flags of every command once, in the list of commands", async () => {
    const flag = /^ +--read-only +refuse every command that writes/m;
    expect((await leasehold(["--help"])).stdout).toMatch(flag);
    const { stdout } = await leasehold(["ls", "--help"]);
    expect(stdout).not.toMatch(flag);
    expect(stdout).toContain("leasehold --help has the flags of every command.");
  });
});

describe("leasehold completion", () => {
  const store = new MemoryLeaseStore();
  // Its time stands still: the limit of the whole look would end the process.
  const clock = new ManualClock(Date.now());
  /** The words that may stand in place of the last of these. */
  const offered = async (...words: string[]) => {
    const { stdout } = await leasehold(["completion", "words", "--", ...words], { store, clock });
    return stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => line.split("\t")[0] ?? "");
  };
  beforeAll(async () => {
    const client = new LeaseClient({ store, clock });
    for (const key of ["orders/b", "orders/a", "my key", "bell\u0007", "line\nbreak"])
      await client.acquire(key);
    const nightly = new JobRuns(client, "nightly", { schedule: "rate(1 day)" });
    await nightly.run(new Date(clock.now() - 1_000), () => 1);
    await new TaskSet(client, "set/one").add([{ id: "1", payload: 1 }]);
  });

  it("offers every command's first word, and what it does", async () => {
    const firsts = [...new Set(Object.keys(commands).map((name) => name.split(" ")[0]))];
    expect(await offered("")).toEqual(firsts);
    expect(await offered()).toEqual(firsts);
    const { stdout } = await leasehold(["completion", "words", "--", "vers"]);
    expect(stdout).toBe("version\tthis command's version, as --version and -V\n");
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
    [["nothing", ""], []],
    [["constructor", ""], []],
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
    [["jobs", "n"], ["nightly"]],
    [["jobs", "missed", ""], ["nightly"]],
    [["tasks", "ls", ""], ["set/one"]],
    [["tasks", "drop", "set/one", ""], []],
    [["get", "my key", ""], []],
    [["version", ""], []],
  ])("offers for %j: %j", async (words, expected) => {
    expect(await offered(...words)).toEqual(expected);
  });

  it("sends 1 request for a key, and none where no table is named: to find it takes many", async () => {
    const words = ["completion", "words", "-v", "--", "get", ""];
    expect((await leasehold(words, { store, clock })).stderr).toMatch(/^1 request: 1 scan/);
    const env = { LEASEHOLD_TABLE_NAME: "" };
    expect(await leasehold(words, { env, clock })).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("offers no key of a table that does not answer within a second", async () => {
    const silent = new ScriptedStore();
    silent.scan = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const { code, stdout } = await leasehold(["completion", "words", "--", "get", ""], {
      store: silent,
      clock,
    });
    expect([code === 0, stdout]).toEqual([false, ""]);
  });

  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

  /** What bash asks this program for a line whose words bash has split so, and what it inserts of the answer. */
  async function inBash(line: string, words: readonly string[], answer: readonly string[]) {
    const { stdout: script } = await leasehold(["completion", "bash"]);
    const program = `${script}
leasehold() { printf '%s\\n' "asked: $*" >&3; printf '%s\\n' ${answer.map(quoted).join(" ")}; }
COMP_LINE=${quoted(line)}; COMP_WORDS=(${words.map(quoted).join(" ")}); COMP_CWORD=${words.length - 1}
_leasehold 3>&1; printf 'inserts: %s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["--norc", "-c", program], { encoding: "utf8" })
      .trimEnd()
      .split("\n");
    const behind = (prefix: string) =>
      output.flatMap((one) => (one.startsWith(prefix) ? one.slice(prefix.length) : []));
    return { asked: behind("asked: completion words -- "), inserted: behind("inserts: ") };
  }

  it.each([
    ["leasehold get ord", ["get", "ord"], "get ord", ["orders/close"], ["orders/close"]],
    ["leasehold ls --js", ["ls", "--js"], "ls --js", ["--json\tshort for --output json"], ["--json"]],
    ["leasehold break my\\ k", ["break", "my\\ k"], "break my k", ["my key"], ["my\\ key"]],
    ["leasehold break 'my k", ["break", "'my k"], "break my k", ["my key", "it's"], ["my key"]],
    ['leasehold stop "', ["stop", '"'], "stop ", ["a b", 'q"', "$(id)", "`id`"], ["a b"]],
    ["leasehold get $", ["get", "$"], "get $", ["$(touch owned)"], ["\\$\\(touch\\ owned\\)"]],
    ["leasehold get t:4", ["get", "t", ":", "4"], "get t:4", ["t:42"], ["42"]],
    ["leasehold get t:", ["get", "t", ":"], "get t:", ["t:42"], ["42"]],
    ["leasehold --table=x get ", ["--table", "=", "x", "get", ""], "--table=x get ", ["k"], ["k"]],
  ])(
    "asks for %j in bash with the words as they are meant, and inserts words that run nothing",
    async (line, words, asked, answer, inserted) => {
      expect(await inBash(line, ["leasehold", ...words], answer)).toEqual({ asked: [asked], inserted });
    },
  );

  it("has a script for zsh and for fish", async () => {
    expect((await leasehold(["completion", "zsh"])).stdout).toMatch(/^#compdef leasehold\n/);
    expect((await leasehold(["completion", "fish"])).stdout).toContain("complete -c leasehold -f -a");
  });
});
