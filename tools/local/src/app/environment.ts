// The variables that lead a function's SDK clients to the engine and to the services of the app.

import type { Engine } from "@leasehold/engine";

/** Of an endpoint's own credentials, a function gets what this process has. */
const credentialVariables = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_PROFILE",
  "AWS_CONFIG_FILE",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_ROLE_ARN",
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
] as const;

/**
 * The variables that lead a function's SDK clients to the engine and to this app's services.
 *
 * Next to a local engine every other service's requests come here as well, where they are refused by name: an app
 * that runs here touches nothing outside.
 */
export function serviceEnvironment(
  engine: Engine,
  region: string,
  servicesEndpoint: string,
  env: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const { endpoint } = engine;
  return {
    ...credentials(engine, env),
    AWS_REGION: region,
    AWS_ENDPOINT_URL_SFN: servicesEndpoint,
    AWS_ENDPOINT_URL_EVENTBRIDGE: servicesEndpoint,
    AWS_ENDPOINT_URL_LAMBDA: servicesEndpoint,
    ...(endpoint === undefined
      ? {}
      : {
          AWS_ENDPOINT_URL: servicesEndpoint,
          AWS_ENDPOINT_URL_DYNAMODB: endpoint,
          AWS_ENDPOINT_URL_DYNAMODB_STREAMS: endpoint,
        }),
  };
}

function credentials({ clientConfig }: Engine, env: NodeJS.ProcessEnv): Record<string, string> {
  const { credentials: own } = clientConfig;
  if (own !== undefined) {
    return { AWS_ACCESS_KEY_ID: own.accessKeyId, AWS_SECRET_ACCESS_KEY: own.secretAccessKey };
  }
  const set = credentialVariables.map((name) => [name, env[name]] as const);
  return Object.fromEntries(
    set.filter((entry): entry is [(typeof entry)[0], string] => entry[1] !== undefined),
  );
}
