// The settings of an SDK client for the engine. Those for our own engine use nothing from the environment.

import type { EngineClientConfig } from "./types.ts";

/**
 * A local engine needs these settings and accepts any value; DynamoDB Local allows only letters and digits in a key.
 */
const dummyRegion = "us-east-1";

/** A fresh object for each engine: the SDK writes a `$source` property into the given one. */
const dummyCredentials = () => ({ accessKeyId: "local", secretAccessKey: "local" });

/** Variables that say where the SDK for JavaScript finds credentials. */
const credentialSettings = [
  "AWS_ACCESS_KEY_ID",
  "AWS_PROFILE",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
] as const;

/** The settings for our own engine. The environment's settings are for other services, so they are left out. */
export function localClientConfig(endpoint: string): EngineClientConfig {
  return { endpoint, region: dummyRegion, credentials: dummyCredentials() };
}

/**
 * The settings for an endpoint that is not ours: the environment's region and credentials, dummies for what is missing.
 *
 * The shared files under ~/.aws count only when AWS_PROFILE asks for them, because many machines with a local engine
 * have them, too.
 */
export function endpointClientConfig(endpoint: string, env: NodeJS.ProcessEnv): EngineClientConfig {
  const hasRegion = Boolean(env.AWS_REGION || env.AWS_PROFILE);
  const hasCredentials = credentialSettings.some((name) => Boolean(env[name]));
  return {
    endpoint,
    // The SDK for JavaScript does not read AWS_DEFAULT_REGION by itself.
    ...(hasRegion ? {} : { region: env.AWS_DEFAULT_REGION || dummyRegion }),
    ...(hasCredentials ? {} : { credentials: dummyCredentials() }),
  };
}
