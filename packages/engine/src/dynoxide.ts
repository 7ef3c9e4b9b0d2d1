// The engine for machines without Java.

import { access, constants, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Lookup } from "./command.ts";
import { installedFolder } from "./installed.ts";
import { throwMistake } from "./mistakes.ts";

/** The one platform whose binary is an optional dependency here. */
const platform = "linux-x64";

/** Finds dynoxide, a DynamoDB over SQLite that needs no Java and starts in some milliseconds. */
export async function findDynoxide(env: NodeJS.ProcessEnv): Promise<Lookup> {
  const here = `${process.platform}-${process.arch}`;
  if (here !== platform) return { missing: `dynoxide runs on ${platform} only, and this is ${here}` };
  const installed = await installedBinary();
  if (installed === undefined) return { missing: `the npm package @dynoxide/${platform} is not installed` };
  return {
    command: {
      name: "dynoxide",
      file: installed.file,
      cwd: dirname(installed.file),
      env,
      args: (port, dataDir) => [
        "--port",
        String(port),
        ...(dataDir === undefined ? [] : ["--db-path", join(dataDir, "dynoxide.sqlite")]),
      ],
      probeHeaders: {},
      // Printed after its bind, so it cannot be about another program's port.
      isOurs: (_answer, output) => output.includes("listening on"),
      version: () => `dynoxide ${installed.version}`,
    },
  };
}

async function installedBinary(): Promise<{ file: string; version: string } | undefined> {
  try {
    const folder = installedFolder(`@dynoxide/${platform}`);
    const file = join(folder, "dynoxide");
    await access(file, constants.X_OK);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
      version: string;
    };
    return { file, version };
  } catch (error) {
    throwMistake(error);
    return undefined;
  }
}
