import { LeaseConfigurationError } from "../sdk/errors.ts";

/** The destination of requests, and the region that they are signed for. */
export interface Endpoint {
  readonly region: string;
  readonly url: URL;
}

/** The options that determine the destination, besides the environment. */
export interface EndpointOptions {
  readonly tableName: string;
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

/**
 * Determines the destination of requests. Throws LeaseConfigurationError if the environment has no region or a wrong
 * one.
 */
export function resolveEndpoint(options: EndpointOptions, env: NodeJS.ProcessEnv): Endpoint {
  const region = resolveRegion(options, env);
  const configured =
    env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS === "true"
      ? undefined
      : env.AWS_ENDPOINT_URL_DYNAMODB || env.AWS_ENDPOINT_URL || undefined;
  const text = options.endpoint ?? configured;
  if (text === undefined) return { region, url: new URL(`https://${hostOf(region, env)}`) };
  const url = endpointUrl(text);
  if (url !== undefined) return { region, url };
  throw new LeaseConfigurationError(
    "LEASE_REGION_MISSING",
    `the endpoint in the environment is no URL: AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL is ${JSON.stringify(withoutUser(text))}`,
  );
}

/** Returns an endpoint's URL; undefined if the text is no URL. */
export function endpointUrl(text: unknown): URL | undefined {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" ? url : undefined;
}

/** An endpoint as a message may show it: without the user name and password of a URL. */
export function withoutUser(endpoint: string): string {
  return endpoint.replace(/\/\/.*@/, "//…@");
}

/** Whether a text can be a region's name, which becomes a part of the host's name. */
export function isRegion(region: unknown): region is string {
  return typeof region === "string" && /^[a-z0-9-]{1,63}$/.test(region);
}

function resolveRegion({ region, tableName }: EndpointOptions, env: NodeJS.ProcessEnv): string {
  // A table's ARN has the table's region.
  const found = region ?? regionIn(tableName) ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION);
  if (isRegion(found)) return found;
  const finding = found === undefined ? "no AWS region" : `${JSON.stringify(found)} is no AWS region`;
  const advice = "set AWS_REGION, or pass region to lightStore()";
  throw new LeaseConfigurationError("LEASE_REGION_MISSING", `${finding}: ${advice}`);
}

/** The region in a table's ARN; undefined for a table's name. */
export function regionIn(tableName: string): string | undefined {
  return tableName.startsWith("arn:") ? tableName.split(":")[3] : undefined;
}

/** The beginnings of regions' names; the domain of their endpoints, and that of their dual-stack endpoints. */
const domains: readonly (readonly [regions: string, plain: string, dualStack: string])[] = [
  ["cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"],
  ["eusc-", "amazonaws.eu", "api.amazonwebservices.eu"],
  ["us-iso-", "c2s.ic.gov", "api.aws.ic.gov"],
  ["us-isob-", "sc2s.sgov.gov", "api.aws.scloud"],
  ["us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"],
  ["eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"],
  ["", "amazonaws.com", "api.aws"],
];

function hostOf(region: string, env: NodeJS.ProcessEnv): string {
  const [, plain, dualStack] = domains.find(([regions]) =>
    region.startsWith(regions),
  ) as (typeof domains)[number];
  const isDualStack = env.AWS_USE_DUALSTACK_ENDPOINT === "true";
  // The plain endpoints of GovCloud are FIPS endpoints.
  const isPlainFips = region.startsWith("us-gov-") && !isDualStack;
  const service = env.AWS_USE_FIPS_ENDPOINT === "true" && !isPlainFips ? "dynamodb-fips" : "dynamodb";
  return `${service}.${region}.${isDualStack ? dualStack : plain}`;
}
