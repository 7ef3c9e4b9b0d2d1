// @module-tag long
// The command line as one file: it works where there is no Node and no package, and on an empty PATH.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Engine, startEngine } from "@leasehold/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeBinary } from "../../tools/packaging/binary.ts";

const root = join(import.meta.dirname, "../..");

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe.skipIf(process.platform !== "linux")("the command line as one file", () => {
  let folder: string;
  let engine: Engine;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "leasehold-binary-test-"));
    await makeBinary(join(folder, "made"));
    engine = await startEngine();
  }, 300_000);

  afterAll(async () => {
    await engine?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function leasehold(...args: readonly string[]): Promise<Ended> {
    const { endpoint } = engine;
    const env = {
      PATH: "",
      HOME: folder,
      LEASEHOLD_TABLE_NAME: "leases",
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    };
    return await promisify(execFile)(join(folder, "made/leasehold"), args, { cwd: folder, env }).then(
      (streams) => ({ code: 0, ...streams }),
      (error: unknown) => error as Ended,
    );
  }

  it("is of the repository's version", async () => {
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
    expect(await leasehold("--version")).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  it("makes a table, runs a command under a lock there, and lists the locks", async () => {
    expect(await leasehold("table", "create", "leases", "--yes")).toMatchObject({ code: 0 });
    const run = await leasehold("run", "backup", "--", "/bin/echo", "it runs");
    expect(run).toMatchObject({ code: 0, stdout: "it runs\n" });
    expect(await leasehold("acquire", "deploy", join(folder, "lease.json"))).toMatchObject({ code: 0 });
    const listed = await leasehold("ls", "-o", "key");
    expect(listed).toMatchObject({ code: 0, stdout: "deploy\n" });
  });

  it("asks for the AWS SDK's credentials, which are in it, and says what to do without any", async () => {
    const { code, stderr } = await leasehold(
      "ls",
      "--endpoint",
      "aws",
      "--profile",
      "nobody",
      "--region",
      "eu-west-1",
    );
    expect(code).toBe(78);
    expect(stderr).toContain("no credentials");
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it("finds the engine of `dev` in the project where it runs, and names the package where there is none", async () => {
    const without = await leasehold("dev");
    expect(without.code).toBe(78);
    expect(without.stderr).toContain("npm install --save-dev @leasehold/engine");
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    expect((await leasehold("dev", "--help")).code).toBe(0);
    const within = await leasehold("dev", "--", "/bin/echo", "it runs");
    expect(within).toMatchObject({ code: 0, stdout: expect.stringContaining("it runs\n") });
  });

  it("comes with the licences of Node, of the packages in it, and its own", async () => {
    const text = await readFile(join(folder, "made/LICENSES.txt"), "utf8");
    for (const name of ["leasehold ", "node-linux-", "@aws-sdk/client-dynamodb ", "aws4 "])
      expect(text).toMatch(new RegExp(`^${name}.* \\(`, "m"));
  });

  it("has in its folder all that the container file copies", async () => {
    const recipe = await readFile(join(root, "tools/packaging/binary/Containerfile"), "utf8");
    const copied = [...recipe.matchAll(/^COPY (\S+) /gm)].map(([, file]) => file);
    expect(copied.sort()).toEqual((await readdir(join(folder, "made"))).sort());
    expect(recipe).toMatch(/^USER (?!0|root)/m);
  });
});
