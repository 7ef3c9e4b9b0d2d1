// Runs a slot by calling the job's own Lambda function, which takes the run's lease itself.

import type { Connection } from "../connection.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
import type { GlobalValues } from "../flags.ts";
import { shown } from "../terminal/text.ts";

/**
 * Calls the function with `{ "scheduledTime": slot }`, and waits for its end. Returns its error's text; undefined
 * without an error.
 */
export type InvokeSlot = (slot: string) => Promise<string | undefined>;

/** The part of the AWS SDK that is used here. It is loaded only for --invoke, and need not be installed otherwise. */
interface LambdaModule {
  readonly LambdaClient: new (config: object) => { send(command: object): Promise<InvokeOutput> };
  readonly InvokeCommand: new (input: object) => object;
}
interface InvokeOutput {
  readonly FunctionError?: string;
  readonly Payload?: { transformToString(): string } | Uint8Array;
}

const packageName = "@aws-sdk/client-lambda";

/** Rejects with a CommandError (78) if the package is not installed. */
export async function invoker(
  functionName: string,
  { region }: Pick<Connection, "region">,
  { profile }: Pick<GlobalValues, "profile">,
): Promise<InvokeSlot> {
  const { LambdaClient, InvokeCommand } = await loadLambda();
  const client = new LambdaClient({
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
  });
  return async (slot) => {
    const Payload = Buffer.from(JSON.stringify({ scheduledTime: slot }));
    const output = await client.send(new InvokeCommand({ FunctionName: functionName, Payload }));
    return output.FunctionError === undefined ? undefined : errorIn(output.Payload);
  };
}

async function loadLambda(): Promise<LambdaModule> {
  try {
    return (await import(packageName)) as LambdaModule;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    const advice = `npm install ${packageName}, beside @leasehold/cli; or give a command behind -- in its place`;
    throw new CommandError(`--invoke needs ${packageName}: ${advice}`, exitCodes.configuration, {
      cause: error,
    });
  }
}

/** A function that has failed answers with its error's message. */
function errorIn(payload: InvokeOutput["Payload"]): string {
  const text = payload === undefined ? "" : Buffer.from(payload as Uint8Array).toString("utf8");
  try {
    const { errorType, errorMessage } = JSON.parse(text) as Record<string, unknown>;
    return shown([errorType, errorMessage].filter(Boolean).join(": "));
  } catch {
    // Ignored: the function's answer is shown, whatever it is.
    return shown(text);
  }
}
