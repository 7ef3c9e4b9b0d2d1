// @module-tag long
// The programs of README and docs, as a reader pastes them into an empty project that has installed the packages.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateTableCommand, type CreateTableCommandInput, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { availableEngines, type Engine, startEngine } from "@leasehold/engine";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allPrograms, importedPackages, isTest, type Program, writePrograms } from "../docs/programs.ts";
import { installPacked, type PackedProject } from "../support/packed.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** Types that come with no import. */
const types = ["@types/aws-lambda", "@types/node", "undici-types"];

/** What `tsc --init` writes, but for the output's folder and Node's types. */
const compilerOptions = {
  outDir: "out",
  types: ["node"],
  module: "nodenext",
  target: "esnext",
  strict: true,
  allowJs: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  noUncheckedSideEffectImports: true,
  moduleDetection: "force",
  skipLibCheck: true,
};

/** The tables of the reader's own application that examples write to: each has the partition key `id`. */
const applicationTables = ["orders", "reports", "transfers"];

const programs = allPrograms();
let project: PackedProject;

beforeAll(async () => {
  const imported = importedPackages(programs).filter((name) => name !== "aws-lambda");
  project = await installPacked([...imported, ...types]);
  const { folder } = project;
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, include: ["*.ts", "*.js"] }),
  );
  await copyFile(join(root, "test/docs/invoke.js"), join(folder, "invoke.mjs"));
  writePrograms(folder, programs);
});

afterAll(async () => {
  await project.remove();
});

/** An engine of its own for one program, so that no program meets what another has left. */
async function startOwnEngine(): Promise<Engine> {
  const quickest = (await availableEngines()).at(-1);
  const engine = await startEngine(quickest === undefined ? {} : { engine: quickest });
  const dynamodb = new DynamoDBClient({ ...engine.clientConfig });
  await createLeaseTable({ tableName: "leases", dynamodb });
  for (const TableName of applicationTables) {
    const input: CreateTableCommandInput = {
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    };
    await dynamodb.send(new CreateTableCommand(input));
  }
  dynamodb.destroy();
  return engine;
}

/** What `leasehold dev` tells its user to export. */
function environmentFor({ endpoint }: Engine): NodeJS.ProcessEnv {
  return {
    ...process.env,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    DYNAMODB_ENDPOINT: endpoint,
    LEASEHOLD_TABLE_NAME: "leases",
  };
}

function commandOf({ file, code, run: how }: Program): readonly string[] {
  const output = join("out", file.replace(/ts$/, "js"));
  if (isTest(code)) return ["node_modules/vitest/vitest.mjs", "run", output];
  return typeof how === "object" ? ["invoke.mjs", output, JSON.stringify(how.event)] : [output];
}

/** What the program did: its exit code or signal, and all that it printed. */
async function outcomeOf(program: Program, env: NodeJS.ProcessEnv): Promise<readonly [unknown, string]> {
  // Examples that wait for nobody end in seconds; SIGKILL shows as the outcome.
  const limits = { timeout: 60_000, killSignal: "SIGKILL" } as const;
  const child = spawn(process.execPath, commandOf(program), { cwd: project.folder, env, ...limits });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      if (program.run === "until SIGTERM") child.kill("SIGTERM");
    });
  }
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return [code ?? signal, printed];
}

describe("the programs of the pages", () => {
  it("compile with the compiler's own settings", async () => {
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const output = await run(process.execPath, [compiler, "-p", "."], { cwd: project.folder }).then(
      () => "",
      (error: { stdout?: string; message: string }) => error.stdout || error.message,
    );
    expect(output).toBe("");
  });

  describe("run", () => {
    it.concurrent.each(
      programs.filter((each) => each.run !== "none").map((each) => [each.place, each] as const),
    )("%s", async (_place, program) => {
      await using engine = await startOwnEngine();
      const [code, printed] = await outcomeOf(program, environmentFor(engine));
      expect(code, printed).toBe(0);
    });
  });
});
