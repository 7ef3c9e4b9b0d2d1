/** Which commit measured figures are of: measured anew now and then, and not with every change of the code. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { generatedIn, withGenerated } from "./costs/markdown.ts";

const root = join(import.meta.dirname, "../..");

/** The page that has the figures of every `npm run evidence -- ...`. */
export const evidencePage: string = join(root, "docs/evidence.md");

async function git(...words: string[]): Promise<string> {
  return (await promisify(execFile)("git", words, { cwd: root })).stdout.trim();
}

/** The commit whose code is measured now, with a plus where the packages or these paths were changed since. */
export async function measuredCommit(...paths: readonly string[]): Promise<string> {
  try {
    const changed = await git("status", "--porcelain", "--", "packages", ...paths);
    return `${await git("rev-parse", "--short=9", "HEAD")}${changed === "" ? "" : "+"}`;
  } catch {
    return "unknown"; // The sources came as an archive, without their history.
  }
}

/** The line that names the commit of figures. */
export function stamp(commit: string): string {
  return `Measured on commit \`${commit}\`.`;
}

/** Gives the page with other figures, and with the commit that they are of. */
export function withMeasured(page: string, figures: string, command: string, commit: string): string {
  return withGenerated(page, `${stamp(commit)}\n\n${figures}`, command);
}

/** Writes the figures of a program, such as `explore --mistakes`, into the page of the evidence. */
export async function writeEvidence(program: string, figures: string, commit: string): Promise<void> {
  const page = await readFile(evidencePage, "utf8");
  await writeFile(evidencePage, withMeasured(page, figures, `npm run evidence -- ${program}`, commit));
}

/** The commit of the figures that a command has written into a page; undefined where they name none. */
export function measuredIn(page: string, command: string): string | undefined {
  return /Measured on commit `(?<commit>[^`]+)`\./.exec(generatedIn(page, command))?.groups?.commit;
}

/** The files below these paths that were changed since a commit; undefined where the history does not reach so far back. */
export async function changedSince(
  commit: string,
  paths: readonly string[],
): Promise<readonly string[] | undefined> {
  try {
    const files = await git("diff", "--name-only", commit.replace(/\+$/, ""), "HEAD", "--", ...paths);
    return files === "" ? [] : files.split("\n");
  } catch {
    return undefined;
  }
}
