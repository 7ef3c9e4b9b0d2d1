// @module-tag long
// `leasehold dev` in processes of its own: what it prints leads clients to its table, and it leaves nothing behind.

import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { availableEngines } from "@leasehold/engine";
import { describe, expect, it } from "vitest";
import { bundledCli, type CliProcess } from "../support/cli-process.ts";
import { eventually } from "../support/patience.ts";
import { ProcessTree } from "../support/process-tree.ts";

const root = join(import.meta.dirname, "../..");
const engines = await availableEngines();
// Beneath node_modules, so that it finds the AWS SDK.
const cli = bundledCli(join(root, "node_modules/.cache"));

const { PATH, HOME, JAVA_HOME } = process.env;
const bare = { PATH, HOME, ...(JAVA_HOME === undefined ? {} : { JAVA_HOME }) };

function leasehold(args: readonly string[], env: NodeJS.ProcessEnv = bare): CliProcess {
  return cli.start([cli.main, ...args], env);
}

/** The variables in the line that is to be pasted, and nothing else of the test's own. */
async function exported(dev: CliProcess): Promise<NodeJS.ProcessEnv> {
  await eventually(() => expect(dev.stderr).toContain("Ctrl-C ends it."));
  const line = /^export (.*)$/m.exec(dev.stdout)?.[1] ?? "";
  return { ...bare, ...Object.fromEntries(line.split(" ").map((entry) => entry.split("="))) };
}

/** Twelve lines of a user's, which say nothing of where the table is. */
const program = (module: string) => `
import { LeaseClient${module === "" ? "" : ", lightStore"} } from "@leasehold/client${module}";
const tableName = process.env.LEASEHOLD_TABLE_NAME;
const client = new LeaseClient(${module === "" ? "{ tableName }" : "{ store: lightStore({ tableName }) }"});
const lease = await client.acquire("hello");
console.log(lease.key, (await client.inspect("hello")).token === lease.token);
await lease.release();
`;

describe.for(engines)("on %s", (engine) => {
  it("prints variables with which the SDK, the light store and every command find its table", async () => {
    const dev = leasehold(["dev", "--engine", engine, "--port", "18500"]);
    const env = await exported(dev);
    expect(Object.keys(env)).toEqual(
      expect.arrayContaining([
        "LEASEHOLD_TABLE_NAME",
        "AWS_ENDPOINT_URL_DYNAMODB",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
      ]),
    );
    for (const module of ["", "/light"]) {
      const file = join(cli.folder, `program${module.replace("/", "-")}.mjs`);
      await writeFile(file, program(module));
      const call = cli.start(["--conditions=leasehold-source", "--import", "tsx", file], env);
      expect([await call.ended, call.stdout, call.stderr]).toEqual([0, "hello true\n", ""]);
    }
    const run = leasehold(["run", "hello", "--", "true"], env);
    expect([await run.ended, run.stderr]).toEqual([0, ""]);
    const ls = leasehold(["ls"], env);
    expect([await ls.ended, ls.stderr]).toEqual([0, expect.stringContaining("table leases")]);

    dev.process.kill("SIGINT");
    expect(await dev.ended).toBe(0);
    await expect(fetch(env.AWS_ENDPOINT_URL_DYNAMODB ?? "")).rejects.toThrow("fetch failed");
  });

  it("keeps its data where a folder is given", async () => {
    const data = join(cli.folder, "made by it", `data of ${engine}`);
    const args = ["dev", "--engine", engine, "--port", "18510", "--data", data];
    const slot = ["--", process.execPath, cli.main, "run", "kept", "--slot", "2026-11-22", "--", "true"];
    expect(await leasehold([...args, ...slot]).ended).toBe(0);
    // It is done already.
    expect(await leasehold([...args, ...slot]).ended).toBe(80);
  });
});

describe.skipIf(!engines.includes("dynoxide"))("leasehold dev", () => {
  const args = ["dev", "--engine", "dynoxide"];

  it("takes the next free port where the wanted one is taken, and says so", async () => {
    const taker = createServer().listen(18_520, "127.0.0.1");
    await once(taker, "listening");
    const dev = leasehold([...args, "--port", "18520"]);
    const env = await exported(dev);
    taker.close();
    expect(Number(new URL(env.AWS_ENDPOINT_URL_DYNAMODB ?? "").port)).toBeGreaterThan(18_520);
    expect(dev.stderr).toContain("The port 18520 is taken");
  });

  it("tells programs by JSON when it is ready", async () => {
    const dev = leasehold([...args, "--port", "18530", "--json"]);
    await eventually(() => expect(dev.stdout).toContain("\n}\n"));
    const { endpoint, tableName, variables } = JSON.parse(dev.stdout);
    expect({ tableName, endpoint: variables.AWS_ENDPOINT_URL_DYNAMODB }).toEqual({
      tableName: "leases",
      endpoint,
    });
  });

  it("runs a command with the variables set, and ends with the command's exit code", async () => {
    const script = "echo $LEASEHOLD_TABLE_NAME $AWS_REGION $AWS_PROFILE; exit 7";
    const env = { ...bare, AWS_PROFILE: "work", DYNAMODB_ENDPOINT: "http://127.0.0.1:1" };
    const call = leasehold([...args, "-t", "locks", "--", "sh", "-c", script], env);
    expect([await call.ended, call.stdout]).toEqual([7, "locks us-east-1\n"]);
  });

  it("starts nothing for a command that does not exist", async () => {
    const call = leasehold([...args, "--", "no-such-command"]);
    expect([await call.ended, call.stderr]).toEqual([127, "leasehold: no-such-command: not found\n"]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)("leaves nothing behind after %s", async (signal) => {
    const dev = leasehold([...args, "--port", "18540", "--", "sh", "-c", "echo ready; sleep 300"]);
    await eventually(() => expect(dev.stdout).toContain("ready"));
    const tree = new ProcessTree(dev.pid);
    tree.look();
    expect(tree.seen.some(({ line }) => line.includes("/dynoxide --port"))).toBe(true);
    dev.process.kill(signal);
    await dev.ended;
    await eventually(() => expect(tree.survivors()).toEqual([]));
  });

  it("ends when its engine ends, and says so", async () => {
    const dev = leasehold([...args, "--port", "18550"]);
    await exported(dev);
    const tree = new ProcessTree(dev.pid);
    tree.look();
    const engine = tree.seen.find(({ line }) => line.includes("/dynoxide --port"));
    expect(engine?.pid).toBeGreaterThan(1);
    process.kill(engine?.pid ?? Number.NaN, "SIGKILL");
    expect(await dev.ended).toBe(69);
    expect(dev.stderr).toContain("has ended by itself");
  });

  it("says what to install where no engine can be started", async () => {
    const call = leasehold(["dev", "--engine", "dynamodb-local"], {
      HOME,
      PATH: "/nowhere",
      JAVA_HOME: "/nowhere",
    });
    expect(await call.ended).toBe(78);
    expect(call.stderr).toContain("no Java was found in JAVA_HOME or on PATH. Install Java 17 or newer");
  });
});
