import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commands } from "../../packages/cli/src/commands/index.ts";
import { texts } from "../../packages/cli/src/error-texts.ts";
import { errorTexts } from "../../tools/packaging/error-page.ts";
import { leasehold } from "../support/command-line.ts";

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

  /** What bash would offer for the last of these words. */
  async function offered(...words: string[]): Promise<string[]> {
    const line = ["leasehold", ...words].map((word) => `'${word}'`).join(" ");
    const program = `${await script("bash")}
COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _leasehold; printf '%s\\n' "\${COMPREPLY[@]}"`;
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

  it("has a script for zsh and for fish, with every command", async () => {
    const [zsh, fish] = [await script("zsh"), await script("fish")];
    expect(zsh).toMatch(/^#compdef leasehold\n/);
    for (const name of Object.keys(commands)) {
      expect(zsh).toContain(`    '${name}') _leasehold_words=`);
      expect(fish).toContain(`-a '${name.split(" ").at(-1)}' -d '`);
    }
    expect(fish).toContain("-l pitr -d 'point-in-time recovery");
  });

  it("refuses a shell that it does not know", async () => {
    const { code, stderr } = await leasehold(["completion", "csh"]);
    expect([code, stderr]).toEqual([64, 'leasehold: "csh" has no completion; allowed: bash, zsh, fish\n']);
  });
});
