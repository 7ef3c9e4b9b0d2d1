/** The pinned tools in Python, in an environment of their own. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const requirements = join(import.meta.dirname, "requirements.txt");
const folder = join(import.meta.dirname, "../../node_modules/.cache/second-opinions");
const python = join(folder, "bin/python");

/** The interpreter that has them, and the folder of their programs. */
export interface PythonTools {
  readonly python: string;
  readonly programs: string;
}

/** Installs the tools where that was not done before; undefined where it cannot be, and then says why this part is skipped. */
export async function pythonTools(part: string): Promise<PythonTools | undefined> {
  const reason = await missing();
  if (reason === undefined) return { python, programs: join(folder, "bin") };
  console.log(`${part}: skipped: ${reason}`);
  return undefined;
}

async function missing(): Promise<string | undefined> {
  try {
    await run("python3", ["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"]);
  } catch {
    return "Python 3.11 or newer, with venv, is not installed"; // Ignored: what it lacks is said to the caller.
  }
  try {
    if (!existsSync(join(folder, "bin/pip"))) {
      await mkdir(folder, { recursive: true });
      await run("python3", ["-m", "venv", folder]);
    }
    const quietly = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries=1"];
    await run(python, ["-m", "pip", "install", ...quietly, "-r", requirements], { timeout: 240_000 });
    return undefined;
  } catch (error) {
    console.log(String((error as { readonly stderr?: unknown }).stderr ?? error).trim());
    return "pip could not install the tools"; // Ignored: the machine may be offline.
  }
}
