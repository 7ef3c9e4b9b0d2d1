// How a kind of engine is started, and how its answers are recognised.

import type { IncomingHttpHeaders } from "node:http";
import type { LocalEngineName } from "./types.ts";

/** How one engine is started and recognised. */
export interface EngineCommand {
  readonly name: LocalEngineName;
  readonly file: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** The arguments for a port, and for a folder that keeps the data; without one the data stays in memory. */
  args(port: number, dataDir: string | undefined): readonly string[];
  /** Sent with the requests that ask whether the engine is ready. */
  readonly probeHeaders: Readonly<Record<string, string>>;
  /**
   * Tells whether an answer came from the process that was started.
   *
   * Another program may have taken the port between its choice and the engine's bind. It answers too, and sooner
   * than a JVM can find out that it came too late.
   */
  isOurs(answer: IncomingHttpHeaders, output: string): boolean;
  /** The label for people, from what the engine printed. */
  version(output: string): string;
}

/** An engine that this machine can start, or what is missing for it. */
export type Lookup = { readonly command: EngineCommand } | { readonly missing: string };
