import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, inject } from "vitest";
import type { Target } from "./proxy.ts";
import { makeTable, type TestTable } from "./table.ts";

/** `leasehold` in a process of its own. */
export interface CliProcess {
  readonly process: ChildProcessWithoutNullStreams;
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Its exit code, or the signal that has ended it, when all of its output has been read. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Bundles the command line of the sources into a folder, and gives the file to run. Processes of it start quickly. */
export async function bundleCli(folder: string): Promise<string> {
  await build({
    absWorkingDir: root,
    entryPoints: ["packages/cli/src/main.ts"],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node22",
    format: "esm",
    conditions: ["leasehold-source"],
    external: ["@aws-sdk/*"],
    logLevel: "error",
  });
  return `${folder}/main.mjs`;
}

/** The variables that lead to a table of an engine, or of a proxy in front of one. */
export function cliEnvironment(target: Target, tableName: string): NodeJS.ProcessEnv {
  const { endpoint, region, credentials } = target.clientConfig as {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  };
  const { PATH, HOME, TMPDIR } = process.env;
  return {
    PATH,
    HOME,
    ...(TMPDIR === undefined ? {} : { TMPDIR }),
    USER: "alice",
    LEASEHOLD_TABLE_NAME: tableName,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
}

function start(file: string, args: readonly string[], env: NodeJS.ProcessEnv): CliProcess {
  const child = spawn(file, args, { env });
  const printed = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk) => (printed.stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk) => (printed.stderr += chunk));
  // A command that ends without reading its input is no failure of the test.
  child.stdin.on("error", () => {});
  return {
    process: child,
    pid: child.pid ?? 0,
    get stdout() {
      return printed.stdout;
    },
    get stderr() {
      return printed.stderr;
    },
    ended: new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal ?? -1))),
  };
}

/** The command line of the sources, for the tests of a file. */
export interface BundledCli {
  /** For files of the tests; the command line is in it. */
  readonly folder: string;
  /** The file to run. */
  readonly main: string;
  /** Starts `node`, or another program. What still runs at the end of a test is killed. */
  readonly start: (args: readonly string[], env: NodeJS.ProcessEnv, file?: string) => CliProcess;
}

/** Bundles it before the tests of this file, into a folder of its own below another, and removes it behind. */
export function bundledCli(parent: string = tmpdir()): BundledCli {
  const started: CliProcess[] = [];
  const cli = {
    folder: "",
    main: "",
    start: (args: readonly string[], env: NodeJS.ProcessEnv, file: string = process.execPath): CliProcess => {
      const call = start(file, args, env);
      started.push(call);
      return call;
    },
  };
  beforeAll(async () => {
    await mkdir(parent, { recursive: true });
    cli.folder = await mkdtemp(join(parent, "leasehold-cli-"));
    cli.main = await bundleCli(cli.folder);
  });
  afterAll(() => rm(cli.folder, { recursive: true, force: true }));
  afterEach(() => {
    for (const { process: child } of started.splice(0)) child.kill("SIGKILL");
  });
  return cli;
}

/** The command line of the sources, and a table of the engine, for the tests of a file. */
export interface CliOnTable extends Omit<BundledCli, "start"> {
  readonly table: TestTable;
  /** The variables that lead to the table, through a proxy if one is given. */
  readonly environment: (target?: Target) => NodeJS.ProcessEnv;
  /** Calls `leasehold` on the table. */
  readonly call: (args: readonly string[], env?: NodeJS.ProcessEnv) => CliProcess;
  /** Runs a line of a shell, in which `leasehold` is this command line. */
  readonly shell: (line: string) => CliProcess;
}

/** Makes them before the tests of this file, and removes them behind. */
export function cliOnTable(): CliOnTable {
  const engine = inject("engine");
  const cli = bundledCli();
  let table: TestTable;
  beforeAll(async () => {
    table = await makeTable(engine);
  });
  afterAll(() => table.close());
  const environment = (target: Target = engine) => cliEnvironment(target, table.tableName);
  return {
    get folder() {
      return cli.folder;
    },
    get main() {
      return cli.main;
    },
    get table() {
      return table;
    },
    environment,
    call: (args, env = {}) => cli.start([cli.main, ...args], { ...environment(), ...env }),
    shell: (line) => {
      const script = `leasehold() { "${process.execPath}" "${cli.main}" "$@"; }; ${line}`;
      return cli.start(["-c", script], environment(), "bash");
    },
  };
}
