// DynamoDB on this machine, with a lease table. The engine's package is large, so it is an optional dependency: npm
// installs it with this one by default. If it is missing, an error explains that.

import { createRequire } from "node:module";
import { join } from "node:path";
import { environmentNames } from "@leasehold/client/environment";
import { onAbort } from "@leasehold/client/internal";
import type { Engine, EngineOptions } from "@leasehold/engine";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes, isMissingPackage, UsageError } from "../exit-codes.ts";
import { choice, defined, text, usually, whole } from "../flags.ts";
import { localCredentials, localRegion, ownCommand } from "../table/place.ts";
import { shown } from "../terminal/text.ts";
import { checkExecutable, runChild } from "../work/child.ts";

type EnginePackage = typeof import("@leasehold/engine");

const packageName = "@leasehold/engine";

/** Starts an engine on this machine. Throws a CommandError (78) without one to start. */
async function startLocalEngine(options: EngineOptions): Promise<Engine> {
  const { startEngine } = await loadEnginePackage();
  try {
    return await startEngine(options);
  } catch (error) {
    const { code, missing } = error as { readonly code?: unknown; readonly missing?: readonly string[] };
    if (code !== "ENGINE_UNAVAILABLE") throw error;
    const message =
      `no DynamoDB engine can be started on this machine: ${missing?.join("; ")}. Install Java 17 or newer; on macOS, ` +
      "Windows and Arm there is no other way. Or run any DynamoDB Local by yourself, and give --endpoint URL to the commands";
    throw new CommandError(message, exitCodes.configuration, { cause: error });
  }
}

/** Finds the package beside this one, or in the user's project. Throws a CommandError (78) if neither has it. */
export async function loadEnginePackage(
  places: readonly (() => unknown)[] = [
    () => import("@leasehold/engine"),
    () => createRequire(join(process.cwd(), "package.json"))(packageName),
  ],
): Promise<EnginePackage> {
  for (const load of places) {
    try {
      return (await load()) as EnginePackage;
    } catch (error) {
      if (!isMissingPackage(error, packageName)) throw error;
    }
  }
  throw new CommandError(
    `leasehold dev runs on ${packageName} (58 MB), which was left out when @leasehold/cli was installed ` +
      `(--omit=optional?): npm install --save-dev ${packageName}. It needs Java 17 or newer; on Linux x64 nothing else`,
    exitCodes.configuration,
  );
}

/** Lines to paste into a shell. No value contains a character that a shell interprets. */
export const shellLines = {
  sh: ({ set, unset }: LocalVariables) => [
    ...(unset.length > 0 ? [`unset ${unset.join(" ")}`] : []),
    `export ${Object.entries(set)
      .map((entry) => entry.join("="))
      .join(" ")}`,
  ],
  fish: ({ set, unset }: LocalVariables) => [
    ...unset.map((name) => `set -e ${name}`),
    ...Object.entries(set).map(([name, value]) => `set -gx ${name} ${value}`),
  ],
  powershell: ({ set, unset }: LocalVariables) => [
    ...unset.map((name) => `Remove-Item Env:${name}`),
    ...Object.entries(set).map(([name, value]) => `$env:${name} = "${value}"`),
  ],
};
type Shell = keyof typeof shellLines;
const shells = Object.keys(shellLines) as Shell[];

/** These variables would point the SDK elsewhere, even if the others are set. */
const misleading = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] as const;

/** The variables to set and to unset, so that clients find a local table. */
interface LocalVariables {
  readonly set: Readonly<Record<string, string>>;
  readonly unset: readonly string[];
}

/** The variables for a table at an endpoint of this machine, in addition to those that are set already. */
export function localVariables(
  { tableName, endpoint }: { readonly tableName: string; readonly endpoint: string },
  env: NodeJS.ProcessEnv,
): LocalVariables {
  return {
    set: {
      [environmentNames.tableName]: tableName,
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_REGION: localRegion,
      AWS_ACCESS_KEY_ID: localCredentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: localCredentials.secretAccessKey,
    },
    unset: misleading.filter((name) => env[name] !== undefined),
  };
}

function environmentWith({ set, unset }: LocalVariables, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !unset.includes(name));
  return { ...Object.fromEntries(kept), ...set };
}

/** The user's shell, by the environment. */
export function shellOf(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): Shell {
  if (env.SHELL?.endsWith("fish")) return "fish";
  return platform === "win32" && env.SHELL === undefined ? "powershell" : "sh";
}

const flags = {
  port: usually(
    whole(
      "where it listens; the next free port where that one is taken (default 8000)",
      { least: 1, most: 65_535 },
      { placeholder: "PORT" },
    ),
    8_000,
  ),
  data: text("DIR", "the folder that keeps the data (default: in memory, gone at the end)"),
  engine: choice(["dynamodb-local", "dynoxide"], "the engine (default: the first that this machine can run)"),
  shell: choice(shells, "whose syntax the lines to paste have (default: that of your shell)"),
};

type DevCall = Call<typeof flags>;

export const dev = command({
  usage: "dev [flags] [-- CMD [ARG…]]",
  details: `
Starts DynamoDB on this machine, makes a lease table in it, and prints the variables that lead clients there: the
library's, the AWS SDK's and this command's. No AWS account is needed, and nothing is sent to AWS. Ctrl-C ends it, with
exit code 0, and leaves nothing behind. With -- CMD it runs CMD with the variables set, and ends with CMD's exit code.

The engine is the package @leasehold/engine, which npm installs with this one: DynamoDB Local where there is Java 17 or newer, else dynoxide on Linux x64.

  leasehold dev                            # and paste what it prints into another terminal
  leasehold dev --data .leases -t leases   # keeps its data
  leasehold dev -- npm test                # a database for the tests alone`,
  writes: false,
  child: "optional",
  flags,
  async run(call) {
    const { flags, global, env, child, signal } = call;
    const { table: tableName = "leases" } = global;
    if (tableName.startsWith("arn:")) {
      throw new UsageError(`--table is "${shown(tableName)}"; allowed: a name, for a table on this machine`);
    }
    if (child !== undefined) checkExecutable(child[0] ?? "", env);
    const engine = await startLocalEngine({
      port: flags.port,
      // An endpoint in the environment is another DynamoDB.
      env: { ...env, DYNAMODB_ENDPOINT: undefined },
      signal,
      ...defined({ dataDir: flags.data, engine: flags.engine }),
    });
    try {
      await makeTable(engine, tableName);
      return child === undefined
        ? await serve(call, engine, tableName)
        : await runIn(call, engine, tableName, child);
    } finally {
      await engine.stop();
    }
  },
});

async function makeTable({ clientConfig }: Engine, tableName: string): Promise<void> {
  const [{ DynamoDBClient }, { createLeaseTable }] = await Promise.all([
    import("@aws-sdk/client-dynamodb"),
    import("@leasehold/client"),
  ]);
  const dynamodb = new DynamoDBClient({ ...clientConfig });
  try {
    await createLeaseTable({ tableName, dynamodb });
  } finally {
    dynamodb.destroy();
  }
}

/** Runs until the user ends it, or until the engine has ended. */
async function serve(
  { flags, env, terminal, printer, signal }: DevCall,
  engine: Engine,
  tableName: string,
): Promise<number> {
  const { version, endpoint = "" } = engine;
  const variables = localVariables({ tableName, endpoint }, env);
  const { port, data } = flags;
  const kept = data === undefined ? "in memory, and gone at the end" : `kept in ${shown(data)}`;
  terminal.say(`${version} runs at ${endpoint}, with the table ${tableName}. Its data is ${kept}.`);
  if (Number(new URL(endpoint).port) !== port)
    terminal.say(`The port ${port} is taken: it is the next free one.`);
  terminal.say("\nPaste this into another terminal, or give it to your program:\n");
  printer.document("engine", { engine: version, endpoint, tableName, variables: variables.set }, () =>
    shellLines[flags.shell ?? shellOf(env)](variables),
  );
  const own = ownCommand(env);
  terminal.say(`\nThen try:   ${own} run hello -- sleep 30`);
  terminal.say(`            ${own} ls`);
  terminal.say(`            ${own} get hello`);
  terminal.say("\nCtrl-C ends it.");
  const isInterrupted = await untilEither(signal, engine.exited);
  if (isInterrupted) return exitCodes.done;
  terminal.complain(`leasehold: ${version} has ended by itself`);
  return exitCodes.unavailable;
}

async function runIn(
  call: DevCall,
  { version, endpoint = "" }: Engine,
  tableName: string,
  commandLine: readonly string[],
): Promise<number> {
  call.terminal.say(`leasehold: ${version} runs at ${endpoint}, with the table ${tableName}`);
  const env = environmentWith(localVariables({ tableName, endpoint }, call.env), call.env);
  return await runChild(call, { commandLine, env }, ({ ended }) => ended);
}

/** Whether a signal aborts before a promise is settled. Keeps the process alive meanwhile. */
async function untilEither(signal: AbortSignal, settled: Promise<void>): Promise<boolean> {
  const keepAlive = setInterval(() => {}, 60_000);
  const aborted = new Promise<true>((resolve) => onAbort(signal, () => resolve(true)));
  const isAborted = await Promise.race([aborted, settled.then(() => false)]);
  clearInterval(keepAlive);
  return isAborted;
}
