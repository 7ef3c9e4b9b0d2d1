/** Which commit measured figures are of: measured anew now and then, and not with every change of the code. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { withGenerated } from "./costs/markdown.ts";

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

/** Writes the figures of a program, such as `explore --mistakes`, into the page of the evidence. */
export async function writeEvidence(program: string, figures: string, commit: string): Promise<void> {
  const page = await readFile(evidencePage, "utf8");
  const measured = `${stamp(commit)}\n\n${figures}`;
  await writeFile(evidencePage, withGenerated(page, measured, `npm run evidence -- ${program}`));
}
