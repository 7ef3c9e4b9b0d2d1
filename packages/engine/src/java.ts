// Finds a Java that is new enough for DynamoDB Local.

import { execFile } from "node:child_process";
import { access, constants, realpath } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { throwMistake } from "./mistakes.ts";

/** DynamoDB Local 3 is compiled for this version. */
const oldestUsableMajor = 17;

/** Limits a hanging launcher; a JVM prints its version in about 35 ms. */
const versionTimeoutMs = 10_000;

interface JavaVersion {
  readonly major: number;
  readonly text: string;
}

/** A usable java, or why there is none. */
export type JavaLookup = { readonly path: string } | { readonly missing: string };

/**
 * Finds a Java that can run DynamoDB Local: JAVA_HOME's first, then each one on PATH.
 *
 * It skips a Java that is too old, or that does not print its version.
 */
export async function findJava(env: NodeJS.ProcessEnv): Promise<JavaLookup> {
  const tooOld: string[] = [];
  const seen = new Set<string>();
  for (const path of candidates(env)) {
    const target = await executableTarget(path);
    if (target === undefined || seen.has(target)) continue;
    seen.add(target);
    const version = await versionOf(path, env);
    if (version === undefined) continue;
    // The path as found, not its target: version managers' shims look at the name that they were called by.
    if (version.major >= oldestUsableMajor) return { path };
    tooOld.push(`${path} is Java ${version.text}`);
  }
  if (tooOld.length > 0) return { missing: `${tooOld.join(", ")}, older than ${oldestUsableMajor}` };
  return { missing: "no Java was found in JAVA_HOME or on PATH" };
}

function candidates(env: NodeJS.ProcessEnv): string[] {
  const binary = process.platform === "win32" ? "java.exe" : "java";
  const home = env.JAVA_HOME ? [join(env.JAVA_HOME, "bin")] : [];
  const path = (env.PATH ?? env.Path ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...home, ...path].map((folder) => join(folder, binary));
}

async function executableTarget(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    return await realpath(path);
  } catch (error) {
    throwMistake(error);
    return undefined;
  }
}

function versionOf(path: string, env: NodeJS.ProcessEnv): Promise<JavaVersion | undefined> {
  return new Promise((resolve) => {
    execFile(path, ["-version"], { env, timeout: versionTimeoutMs }, (error, stdout, stderr) => {
      resolve(error === null ? parseVersion(stderr + stdout) : undefined);
    });
  });
}

/** Up to Java 8 the major version is the second number: "1.8.0_402". Since then the first: "17.0.15", "21-ea". */
function parseVersion(output: string): JavaVersion | undefined {
  const [, text, major] = /version "((?:1\.)?(\d+)[^"]*)"/.exec(output) ?? [];
  return text === undefined || major === undefined ? undefined : { major: Number(major), text };
}
