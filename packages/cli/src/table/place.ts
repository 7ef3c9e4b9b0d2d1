// Where a table is and how it is named, and what is the same of all engines on this machine.

import type { Clock } from "@leasehold/client";
import { UsageError } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

/** The place of a table, and the access to it. */
export interface TablePlace {
  readonly tableName: string;
  readonly region: string | undefined;
  readonly endpoint: string | undefined;
  readonly profile: string | undefined;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
}

export interface TableSize {
  readonly items: number;
  readonly bytes: number;
}

/** The tag by which commands find the table when none is named. */
export const tableTag = { Key: "leasehold", Value: "true" } as const;

export function hasTableTag(
  tags: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[] = [],
): boolean {
  return tags.some(({ Key, Value }) => Key === tableTag.Key && Value === tableTag.Value);
}

/** The name of a table that does not exist yet. Throws a UsageError. */
export function newTableName(name: string | undefined): string {
  if (name === undefined) throw new UsageError("no name is given; say leasehold table create NAME");
  if (!/^[\w.-]{3,255}$/.test(name)) {
    throw new UsageError(
      `"${shown(name)}" is no table's name; allowed: 3 to 255 letters, digits, _, - and .`,
    );
  }
  return name;
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
