import { readFile } from "node:fs/promises";
import { LeaseClient, systemClock } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { placeOf } from "../../packages/cli/src/connection.ts";
import { globalFlags, parseFlags } from "../../packages/cli/src/flags.ts";
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
    ["lss", "lss is no command: did you mean ls?; leasehold --help lists them"],
    ["watch", "watch is no command; leasehold --help lists them"],
    ["help lss", "lss is no command: did you mean ls?; leasehold --help lists them"],
    [
      "table sam",
      "table needs a second word: table create, table show, table check, table set, table cfn, table terraform, table cdk, table policy",
    ],
    ["ls --tabel x", "--tabel is no flag of this command: did you mean --table?; --help shows them"],
    ["ls --timeout 30", '--timeout is "30"; say 30s or 30ms'],
    ["ls --timeout soon", '--timeout is "soon"; allowed: a duration such as 500ms, 30s, 5m, 2h, 7d'],
    ["ls --table", "Option '-t, --table <value>' argument missing"],
    ["ls a b", '"b" is one too many; usage: leasehold ls [PREFIX]; leasehold ls --help tells more'],
    ["version -- x", '"x" is one too many; usage: leasehold version; leasehold version --help tells more'],
    ["wait k --until gone", '--until is "gone"; allowed: free, held, gone-owner=GLOB'],
    ["wait k --for 1s --timeout 1s", "--timeout is another name for --for here; give one of them"],
    [
      "run k",
      "no command stands behind --; usage: leasehold run KEY [flags] -- CMD [ARG…]; leasehold run --help tells more",
    ],
    ["run k --read --write -- true", "--read and --write do not go together; give one of them"],
    [
      "run k --permits 2 --slot a -- true",
      "--slot does not go together with --permits; leave one of them out",
    ],
    [
      "run k --read --at-least 1s -- true",
      "--at-least does not go together with --read; leave one of them out",
    ],
    ["run k --wait 1s -n -- true", "--wait and --no-wait do not go together"],
    [
      "run k --at-least 1m -- true",
      "--at-least is 1m 00s; allowed: at most the lease, 30s; a longer --lease allows more",
    ],
    [
      "run k --lease 4s --grace 3s -- true",
      "--grace is 3.0s; allowed: less than 2.0s, half of the lease, for a renewal comes each third of it",
    ],
    [
      "run k --lease 4s --no-heartbeat --grace 4s -- true",
      "--grace is 4.0s; allowed: less than 4.0s, the lease",
    ],
    ["run k --fd 2 -- true", '--fd is "2"; allowed: a whole number from 3 to 9'],
    ["run k --on-lost cry -- true", '--on-lost is "cry"; allowed: term, kill, ignore'],
    ["run k --data { -- true", "--data is no JSON: {"],
    [
      "jobs show report 2026-11-21T10:00",
      'the slot is "2026-11-21T10:00"; allowed: a time with its zone, such as 2026-11-21T08:00Z',
    ],
    [
      "jobs runs report --state dead",
      '--state is "dead"; allowed: running, succeeded, failed, lost, skipped, with commas between',
    ],
    [
      "jobs runs report --since yesterday",
      '--since is "yesterday"; allowed: 7d, 2026-11-21, or 2026-11-21T08:00Z',
    ],
    ["jobs run report --slot 2026-11-21T09:00Z", "give either --invoke FUNCTION, or -- CMD"],
    [
      "jobs run report --slot 2026-11-21T09:00Z --schedule at(2026-11-21T08:00:00) -- true",
      "--slot and --schedule do not go together; give one of them",
    ],
    ["tasks requeue orders", "give either ids, or --state"],
    ["table create x", '"x" is no table\'s name; allowed: 3 to 255 letters, digits, _, - and .'],
    ["table create leases --tag team", '--tag is "team"; allowed: KEY=VALUE'],
    ["table set", "nothing is to be set; leasehold table set --help lists what can be"],
    ["table set --pitr --no-pitr", "--pitr and --no-pitr do not go together; give one of them"],
    [
      "table policy",
      "something is missing; usage: leasehold table policy use|primitives|operate|read|create [flags]; leasehold table policy --help tells more",
    ],
    [
      "table policy admin",
      '"admin" says not whom the policy is for; allowed: use, primitives, operate, read, create',
    ],
    ["table policy use --prefix ", "--prefix is empty; leave it out, or give it a value"],
    [
      "table policy create --prefix x",
      "--prefix does not go together with create: a table's settings have no keys",
    ],
    ["cost --acquires 2", '--acquires is "2"; allowed: a rate such as 2/s, 10/m, 500/h, 20/d'],
    ["cost --lease 0", '--lease is "0"; allowed: a duration such as 30s'],
    [
      "dev -t arn:aws:dynamodb:eu-central-1:1:table/x",
      '--table is "arn:aws:dynamodb:eu-central-1:1:table/x"; allowed: a name, for a table on this machine',
    ],
    [
      "console --host 0.0.0.0",
      "--host 0.0.0.0 lets others in: it needs --auth-token-file FILE, or --trust-header NAME behind something that sets it",
    ],
    ["console --public-url ftp://x", '--public-url is "ftp://x"; allowed: an address with http: or https:'],
    [
      "console --auth-token-file /nowhere/secret",
      "--auth-token-file: ENOENT: no such file or directory, open '/nowhere/secret'",
    ],
    ["completion csh", '"csh" has no completion; allowed: bash, zsh, fish'],
    [
      "help errors LEASE_UNAVAILABEL",
      "LEASE_UNAVAILABEL is no error code: did you mean LEASE_UNAVAILABLE?; leasehold help errors lists them",
    ],
  ])("refuses %s, says what is allowed, and sends nothing", async (line, message) => {
    const called = await leasehold(line.split(" "));
    expect(called).toEqual({ code: 64, stdout: "", stderr: `leasehold: ${message}\n` });
  });

  it.each([
    ...[
      "run k -- true",
      "acquire k",
      "renew file",
      "release file",
      "stop k",
      "break k",
      "pause k",
      "resume k",
    ],
    ...["jobs skip job slot", "jobs run job -- true", "jobs backfill job -- true"],
    ...["tasks add set", "tasks requeue set id", "tasks drop set id", "tasks work set -- true"],
    ...["table create leases", "table set --ttl", "conformance"],
  ])("refuses %s where only reading is allowed, and sends nothing", async (line) => {
    const called = await leasehold(["--yes", ...line.split(" ")], { env: { LEASEHOLD_READ_ONLY: "1" } });
    const message = "writes, and --read-only (LEASEHOLD_READ_ONLY) is on\n";
    expect(called).toEqual({ code: 77, stdout: "", stderr: expect.stringContaining(message) });
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
});

it.each([
  ["the other one where AWS_ENDPOINT_URL_DYNAMODB is empty", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"],
  ["DYNAMODB_ENDPOINT where AWS_ENDPOINT_URL is empty", "AWS_ENDPOINT_URL", "DYNAMODB_ENDPOINT"],
])("the endpoint is that of %s", async (_, empty, other) => {
  const env = { [empty]: "", [other]: "http://localhost:8000" };
  const { values } = parseFlags(["-t", "leases"], globalFlags, env);
  const { signal } = new AbortController();
  expect(await placeOf(values, { env, clock: systemClock, signal })).toMatchObject({
    endpoint: "http://localhost:8000",
    region: "us-east-1",
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
