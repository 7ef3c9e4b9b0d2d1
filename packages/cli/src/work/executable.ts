// Whether a command can be run at all, known before anything is acquired for it.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

/**
 * Checks that a command is there and may be run, as a shell looks for it: a name with a slash is a path, every other name
 * is looked for in PATH. Throws a CommandError: 127 where it is not found, 126 where it cannot be run.
 */
export function checkExecutable(command: string, env: NodeJS.ProcessEnv): void {
  // Windows looks in more places, and for more endings.
  if (process.platform === "win32") return;
  const folders = command.includes("/") ? [""] : (env.PATH ?? "").split(delimiter);
  const files = folders.map((folder) => (folder === "" ? resolve(command) : join(folder, command)));
  const found = files.filter(isFile);
  if (found.some(isExecutable)) return;
  if (found.length === 0) throw new CommandError(`${shown(command)}: not found`, exitCodes.notFound);
  throw new CommandError(`${shown(command)}: may not be run (no x permission)`, exitCodes.cannotRun);
}

/** A folder is there too, and cannot be run. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Ignored: what is not there, or may not be run, is not the file that is looked for.
    return false;
  }
}
