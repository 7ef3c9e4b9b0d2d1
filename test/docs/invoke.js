// Calls the `handler` of a module as Lambda does: node invoke.mjs MODULE EVENT
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [file, event] = process.argv.slice(2);
const { handler } = await import(pathToFileURL(resolve(file)).href);
const endsAt = performance.now() + 30_000;
const context = {
  awsRequestId: crypto.randomUUID(),
  callbackWaitsForEmptyEventLoop: true,
  functionName: "example",
  functionVersion: "$LATEST",
  invokedFunctionArn: "arn:aws:lambda:eu-west-1:111122223333:function:example",
  memoryLimitInMB: "128",
  logGroupName: "/aws/lambda/example",
  logStreamName: "2026/11/21/[$LATEST]0",
  getRemainingTimeInMillis: () => Math.max(0, endsAt - performance.now()),
};
console.log(JSON.stringify(await handler(JSON.parse(event), context)));
