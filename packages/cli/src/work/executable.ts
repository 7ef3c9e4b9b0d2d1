// Checks that a command can be run, before anything is acquired for it.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

/**
 * Checks that a command exists and may be run, in the way of a shell: a name with a slash is a path, and PATH is
 * searched for every other name. Throws a CommandError: 127 if it is not found, 126 if it cannot be run.
 */
export function checkExecutable(command: string, env: NodeJS.ProcessEnv): void {
  // Windows searches more places, and more extensions.
  if (process.platform === "win32") return;
  const folders = command.includes("/") ? [""] : (env.PATH ?? "").split(delimiter);
  const files = folders.map((folder) => (folder === "" ? resolve(command) : join(folder, command)));
  const found = files.filter(isFile);
  if (found.some(isExecutable)) return;
  if (found.length === 0) throw new CommandError(`${shown(command)}: not found`, exitCodes.notFound);
  throw new CommandError(`${shown(command)}: may not be run (no x permission)`, exitCodes.cannotRun);
}

/** A folder has that permission too, but cannot be run. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Ignored: a missing or unreadable path is not the wanted file.
    return false;
  }
}
