import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@leasehold/engine";
import { type LocalApp, startApp } from "@leasehold/local";
import { synthesize } from "../../tools/demo/synthesis.ts";

/** The stack of infra/app.ts. */
export const localStackName = "Leasehold";

/**
 * Runs this repository's app on this machine, and answers for AWS: gives the environment in which every SDK client finds
 * it. All of it ends with the resources.
 */
export async function startLocalDeployment(
  resources: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-acceptance-"));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  const engine = resources.use(await startEngine({ signal }));
  await synthesize(folder, signal);
  const app = resources.use(await startApp({ assemblyDir: folder, engine }));
  const stacks = await startStacks(app);
  resources.defer(() => stacks.close());
  return endpointsOf(app, String(engine.endpoint), stacks.endpoint);
}

/** The variables by which the SDK finds other endpoints than AWS's, with a region and credentials that are none. */
export function endpointsOf(
  { servicesEndpoint }: LocalApp,
  dynamodb: string,
  cloudFormation: string,
): Record<string, string> {
  return {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb,
    AWS_ENDPOINT_URL_SFN: servicesEndpoint,
    AWS_ENDPOINT_URL_LAMBDA: servicesEndpoint,
    AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation,
  };
}

/** Answers DescribeStacks for a local app, as CloudFormation does: in XML. */
export async function startStacks({ outputs }: Pick<LocalApp, "outputs">): Promise<{
  readonly endpoint: string;
  close(): Promise<void>;
}> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const name = new URLSearchParams(body).get("StackName") ?? "";
    const given = Object.entries(outputs).filter(([id]) => id.startsWith(`${name}.`));
    response.writeHead(given.length > 0 ? 200 : 400, { "content-type": "text/xml" });
    response.end(given.length > 0 ? stackXml(name, given) : missingXml(name));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function stackXml(name: string, outputs: readonly (readonly [string, unknown])[]): string {
  const members = outputs.map(
    ([id, value]) =>
      `<member><OutputKey>${xml(id.slice(name.length + 1))}</OutputKey><OutputValue>${xml(String(value))}</OutputValue></member>`,
  );
  return `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member><StackName>${xml(name)}</StackName><CreationTime>2026-11-22T08:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus><Outputs>${members.join("")}</Outputs></member></Stacks></DescribeStacksResult><ResponseMetadata><RequestId>local</RequestId></ResponseMetadata></DescribeStacksResponse>`;
}

function missingXml(name: string): string {
  return `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id ${xml(name)} does not exist</Message></Error><RequestId>local</RequestId></ErrorResponse>`;
}

function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
