import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory with a function's inline code, as Lambda makes it. */
export interface InlineCode {
  readonly directory: string;
  remove(): Promise<void>;
}

/** Writes a function's inline code to a directory of its own. */
export async function writeInlineCode(code: string): Promise<InlineCode> {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-inline-"));
  await writeFile(join(directory, "index.js"), code);
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) };
}
