// The engine of `leasehold dev`. Its package is large, so it is an optional dependency: npm installs it with this one
// by default. If it is missing, an error explains that.

import { createRequire } from "node:module";
import { join } from "node:path";
import type { Engine, EngineOptions } from "@leasehold/engine";
import { CommandError, exitCodes } from "../exit-codes.ts";

type EnginePackage = typeof import("@leasehold/engine");

const packageName = "@leasehold/engine";

/** Starts an engine on this machine. Throws a CommandError (78) without one to start. */
export async function startLocalEngine(options: EngineOptions): Promise<Engine> {
  const { startEngine } = await loadEnginePackage();
  try {
    return await startEngine(options);
  } catch (error) {
    const { code, missing } = error as { readonly code?: unknown; readonly missing?: readonly string[] };
    if (code !== "ENGINE_UNAVAILABLE") throw error;
    const message =
      `no DynamoDB engine can be started on this machine: ${missing?.join("; ")}. Install Java 17 or newer; on macOS, ` +
      "Windows and Arm there is no other way. Or run any DynamoDB Local by yourself, and give --endpoint URL to the commands";
    throw new CommandError(message, exitCodes.configuration, { cause: error });
  }
}

/** Finds the package beside this one, or in the user's project. Throws a CommandError (78) if neither has it. */
export async function loadEnginePackage(
  places: readonly (() => unknown)[] = [
    () => import("@leasehold/engine"),
    () => createRequire(join(process.cwd(), "package.json"))(packageName),
  ],
): Promise<EnginePackage> {
  for (const load of places) {
    try {
      return (await load()) as EnginePackage;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const isMissing = code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND";
      if (!isMissing || !message.includes(packageName)) throw error;
    }
  }
  throw new CommandError(
    `leasehold dev runs on ${packageName} (58 MB), which was left out when @leasehold/cli was installed ` +
      `(--omit=optional?): npm install --save-dev ${packageName}. It needs Java 17 or newer; on Linux x64 nothing else`,
    exitCodes.configuration,
  );
}
