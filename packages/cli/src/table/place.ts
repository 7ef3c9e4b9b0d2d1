// Where a table is, and what is the same of all engines on this machine.

import type { Clock } from "@leasehold/client";

/** The place of a table, and the access to it. */
export interface TablePlace {
  readonly tableName: string;
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  readonly profile: string | undefined;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
}

/** The size of a table. */
export interface TableSize {
  readonly items: number;
  readonly bytes: number;
}

const loopbackHost = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/;

/** Engines on this machine take any credentials, and keep the data of each access key and region apart. */
export const localCredentials = { accessKeyId: "local", secretAccessKey: "local" } as const;
export const localRegion = "us-east-1";

/** Whether an endpoint is on this machine: then it is a local engine. */
export function isLoopback(endpoint: string | undefined): boolean {
  return endpoint !== undefined && URL.canParse(endpoint) && isLoopbackHost(new URL(endpoint).hostname);
}

/** Whether a host's name or address always means this machine. */
export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host);
}

/** How the user calls this program: with npx there may be no `leasehold` on the PATH. */
export function ownCommand({ npm_command: npmCommand }: NodeJS.ProcessEnv): string {
  return npmCommand === "exec" ? "npx @leasehold/cli" : "leasehold";
}
