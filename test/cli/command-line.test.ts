import { readFile } from "node:fs/promises";
import { LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leasehold } from "../support/command-line.ts";
import { type Reaction, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

describe("the command line", () => {
  it("lists its commands, and ends with 64 where none is named", async () => {
    const { code, stdout } = await leasehold(["--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("  ls ");
    expect((await leasehold([])).code).toBe(64);
  });

  it.each([
    [["lss"], "lss is no command: did you mean ls?; leasehold --help lists them"],
    [["watch"], "watch is no command; leasehold --help lists them"],
    [
      ["table", "sam"],
      "table needs a second word: table create, table show, table check, table set, table cfn, table terraform, table cdk, table policy",
    ],
    [["ls", "--tabel", "x"], "--tabel is no flag of this command: did you mean --table?; --help shows them"],
    [["ls", "--timeout", "30"], '--timeout is "30"; say 30s or 30ms'],
    [["ls", "--timeout", "soon"], '--timeout is "soon"; allowed: a duration such as 500ms, 30s, 5m, 2h, 7d'],
    [["ls", "--table"], "Option '-t, --table <value>' argument missing"],
    [["ls", "a", "b"], '"b" is one too many; usage: leasehold ls [PREFIX]; leasehold ls --help tells more'],
    [
      ["version", "--", "x"],
      '"x" is one too many; usage: leasehold version; leasehold version --help tells more',
    ],
  ])("refuses %j, says what is allowed, and sends nothing", async (args, message) => {
    const { code, stdout, stderr } = await leasehold(args);
    expect({ code, stdout, stderr }).toEqual({ code: 64, stdout: "", stderr: `leasehold: ${message}\n` });
  });

  it("ends with 78 and says what to set where no table is named", async () => {
    const { code, stderr } = await leasehold(["ls"], { env: { LEASEHOLD_TABLE_NAME: "" } });
    expect(code).toBe(78);
    expect(stderr).toContain("LEASEHOLD_TABLE_NAME");
  });

  it.each([
    ["exec", "npx @leasehold/cli dev"],
    ["run-script", "leasehold dev"],
  ])("says how to try it without AWS as the user calls it: npm %s", async (npmCommand, command) => {
    const env = { LEASEHOLD_TABLE_NAME: "", npm_command: npmCommand };
    const { code, stderr } = await leasehold(["ls"], { env });
    expect([code, stderr]).toEqual([78, expect.stringContaining(`: ${command}\n`)]);
  });

  it("takes flags before and behind the command's name", async () => {
    const store = new MemoryLeaseStore();
    await new LeaseClient({ store }).acquire("import");
    const before = await leasehold(["-o", "key", "ls"], { store });
    const behind = await leasehold(["ls", "-o", "key"], { store });
    expect([before.stdout, behind.stdout]).toEqual(["import\n", "import\n"]);
  });

  it("shows what is hostile in a key, and never sends it to the terminal", async () => {
    const store = new MemoryLeaseStore();
    await new LeaseClient({ store }).acquire("a\u001b[2J\u202eb\nc");
    const { stdout } = await leasehold(["ls", "-o", "key"], { store });
    expect(stdout).toBe("a\\x1b[2J\\u202eb\\x0ac\n");
  });

  it("fits its lines into a terminal of 40 columns", async () => {
    const store = new MemoryLeaseStore();
    await new LeaseClient({ store, owner: "o".repeat(80) }).acquire("k".repeat(80));
    const { stdout } = await leasehold(["ls"], { store, columns: 40, env: { NO_COLOR: "1" } });
    expect(stdout.split("\n").filter((line) => line.length > 40)).toEqual([]);
    expect(stdout).toContain("k…");
  });
});

describe("where another program answers in DynamoDB's place", () => {
  const page: Reaction = (response) =>
    void response.writeHead(404, { "content-type": "text/html" }).end("<html>Not found</html>");
  let server: ScriptedServer;
  beforeAll(async () => {
    server = await startScriptedServer();
  });
  afterAll(() => server.close());

  it.each(["ls", "get k", "wait k", "acquire k", "run k -- true", "table show", "table check", "doctor"])(
    "leasehold %s ends with 69, what came and where advice is, and without a stack",
    async (line) => {
      server.script(page);
      const env = { AWS_ENDPOINT_URL_DYNAMODB: server.url, PATH: process.env.PATH };
      // It would go on for ever where it takes this for what may pass.
      const signal = AbortSignal.timeout(30_000);
      const { code, stderr } = await leasehold(line.split(" "), { env, signal });
      expect(stderr).toMatch(/^leasehold: the table "leases" .*: request rejected /m);
      expect(stderr).toMatch(/^leasehold help errors LEASE_REQUEST_REJECTED says what to do$/m);
      expect(stderr).toMatch(/status 404|<html>/);
      expect(stderr).not.toMatch(/\n\s+at /);
      expect(code).toBe(69);
    },
  );
});

it.each(["--version", "-V", "-qV", "--version --json"])("leasehold %s prints the version", async (line) => {
  const { version } = JSON.parse(await readFile("package.json", "utf8"));
  const { code, stdout, stderr } = await leasehold(line.split(" "));
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  if (line.endsWith("json")) expect(JSON.parse(stdout)).toMatchObject({ version });
  else expect(stdout).toBe(`${version}\n`);
});
