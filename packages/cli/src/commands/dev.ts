import type { Engine } from "@leasehold/engine";
import { type Call, command } from "../command.ts";
import { ownCommand } from "../connection.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { choice, text, whole } from "../flags.ts";
import { startLocalEngine } from "../local/engine.ts";
import { environmentWith, localVariables, shellLines, shellOf, shells } from "../local/variables.ts";
import { shown } from "../terminal/text.ts";
import { checkExecutable } from "../work/executable.ts";
import { runChild } from "../work/run-child.ts";

const flags = {
  port: whole("where it listens; the next free port where that one is taken (default 8000)", {
    least: 1,
    most: 65_535,
    placeholder: "PORT",
  }),
  data: text("DIR", "the folder that keeps the data (default: in memory, gone at the end)"),
  engine: choice(["dynamodb-local", "dynoxide"], "the engine (default: the first that this machine can run)"),
  shell: choice(shells, "whose syntax the lines to paste have (default: that of your shell)"),
};

type DevCall = Call<typeof flags>;

const defaultPort = 8_000;

export default command({
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
      port: flags.port ?? defaultPort,
      // An endpoint in the environment is another DynamoDB.
      env: { ...env, DYNAMODB_ENDPOINT: undefined },
      signal,
      ...(flags.data === undefined ? {} : { dataDir: flags.data }),
      ...(flags.engine === undefined ? {} : { engine: flags.engine }),
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
  const { port = defaultPort, data } = flags;
  const kept = data === undefined ? "in memory, and gone at the end" : `kept in ${shown(data)}`;
  terminal.say(`${version} runs at ${endpoint}, with the table ${tableName}. Its data is ${kept}.`);
  if (Number(new URL(endpoint).port) !== port)
    terminal.say(`The port ${port} is taken: it is the next free one.`);
  terminal.say("\nPaste this into another terminal, or give it to your program:\n");
  printer.document("engine", { engine: version, endpoint, tableName, variables: variables.set }, () =>
    shellLines(variables, flags.shell ?? shellOf(env)),
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

/** Runs a command beside the engine. */
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
  const aborted = new Promise<true>((resolve) => {
    if (signal.aborted) resolve(true);
    signal.addEventListener("abort", () => resolve(true), { once: true });
  });
  const isAborted = await Promise.race([aborted, settled.then(() => false)]);
  clearInterval(keepAlive);
  return isAborted;
}
