// The owner of the credentials. STS answers that without a permission.

import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import aws4 from "aws4";

/** Returns the ARN of the caller. Rejects if there are no credentials, or if STS refuses them. */
export async function callerArn(
  { config }: DynamoDBClient,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<string> {
  const region = await config.region();
  const { accessKeyId, secretAccessKey, sessionToken } = await config.credentials();
  const china = region.startsWith("cn-") ? ".cn" : "";
  const url = new URL(env.AWS_ENDPOINT_URL_STS ?? `https://sts.${region}.amazonaws.com${china}`);
  const request = {
    host: url.host,
    path: "/",
    method: "POST",
    service: "sts",
    region,
    headers: { "Content-Type": "application/x-www-form-urlencoded", Accept: "application/json" },
    body: "Action=GetCallerIdentity&Version=2011-06-15",
  };
  const credentials = {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  };
  const { headers = {} } = aws4.sign(request, credentials);
  const { Host: _, "Content-Length": __, ...sent } = headers as Record<string, string>;
  const answer = await fetch(url, { method: "POST", headers: sent, body: request.body, signal });
  const text = await answer.text();
  const { GetCallerIdentityResponse: said, Error: error } = parsed(text);
  const arn = said?.GetCallerIdentityResult?.Arn;
  if (arn !== undefined) return arn;
  throw new Error(error?.Message ?? `STS answered with status ${answer.status}`);
}

interface Answer {
  readonly GetCallerIdentityResponse?: { readonly GetCallerIdentityResult?: { readonly Arn?: string } };
  readonly Error?: { readonly Message?: string };
}

function parsed(text: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    // Ignored: a proxy's page, or XML. The status is enough.
    return {};
  }
}
