// The environment variables that point clients to a local table, and the lines that set them in a shell.

import { environmentNames } from "@leasehold/client/environment";
import { localCredentials, localRegion } from "../connection.ts";

/** The shells whose syntax is known. */
export const shells = ["sh", "fish", "powershell"] as const;
export type Shell = (typeof shells)[number];

/** These variables would point the SDK elsewhere, even if the others are set. */
const misleading = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] as const;

/** The variables to set and to unset, so that clients find a local table. */
export interface LocalVariables {
  readonly set: Readonly<Record<string, string>>;
  readonly unset: readonly string[];
}

/** The variables for a table at an endpoint of this machine, in addition to those that are set already. */
export function localVariables(
  { tableName, endpoint }: { readonly tableName: string; readonly endpoint: string },
  env: NodeJS.ProcessEnv,
): LocalVariables {
  return {
    set: {
      [environmentNames.tableName]: tableName,
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_REGION: localRegion,
      AWS_ACCESS_KEY_ID: localCredentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: localCredentials.secretAccessKey,
    },
    unset: misleading.filter((name) => env[name] !== undefined),
  };
}

/** An environment with these variables. */
export function environmentWith({ set, unset }: LocalVariables, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !unset.includes(name));
  return { ...Object.fromEntries(kept), ...set };
}

/** The user's shell, by the environment. */
export function shellOf(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): Shell {
  if (env.SHELL?.endsWith("fish")) return "fish";
  return platform === "win32" && env.SHELL === undefined ? "powershell" : "sh";
}

/** Lines to paste into a shell. No value contains a character that a shell interprets. */
export function shellLines({ set, unset }: LocalVariables, shell: Shell): string[] {
  const entries = Object.entries(set);
  switch (shell) {
    case "sh":
      return [
        ...(unset.length > 0 ? [`unset ${unset.join(" ")}`] : []),
        `export ${entries.map(([name, value]) => `${name}=${value}`).join(" ")}`,
      ];
    case "fish":
      return [
        ...unset.map((name) => `set -e ${name}`),
        ...entries.map(([name, value]) => `set -gx ${name} ${value}`),
      ];
    case "powershell":
      return [
        ...unset.map((name) => `Remove-Item Env:${name}`),
        ...entries.map(([name, value]) => `$env:${name} = "${value}"`),
      ];
  }
}
