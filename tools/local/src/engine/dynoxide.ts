// The engine for machines without Java.

import { access, constants, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { isProgrammerError } from "../program-errors.ts";
import type { Lookup } from "./command.ts";

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
      args: (port) => ["--port", String(port)],
      probeHeaders: {},
      // Printed after its bind, so it cannot be about another program's port.
      isOurs: (_answer, output) => output.includes("listening on"),
      version: () => `dynoxide ${installed.version}`,
    },
  };
}

async function installedBinary(): Promise<{ file: string; version: string } | undefined> {
  try {
    const manifest = createRequire(import.meta.url).resolve(`@dynoxide/${platform}/package.json`);
    const file = join(dirname(manifest), "dynoxide");
    await access(file, constants.X_OK);
    const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version: string };
    return { file, version };
  } catch (error) {
    if (isProgrammerError(error)) throw error;
    return undefined;
  }
}
