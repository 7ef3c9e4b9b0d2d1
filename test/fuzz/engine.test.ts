// Options of the engine: refused by name before anything is looked for or started. An endpoint that is none keeps right options
// from starting one.

import { InvalidEndpointError, InvalidEngineOptionError, startEngine } from "@leasehold/engine";
import { expect, test } from "vitest";
import { hostiles } from "./hostile.ts";

const env = { DYNAMODB_ENDPOINT: "no address" };
const refusalOf = (options: unknown): Promise<unknown> =>
  startEngine(options as never).catch((reason: unknown) => reason);
const right = { port: 8_000, dataDir: "data", signal: new AbortController().signal };

test.each(Object.entries(right))("startEngine takes %s %j", async (option, value) => {
  expect(await refusalOf({ [option]: value, env })).toBeInstanceOf(InvalidEndpointError);
});

test.each(["engine", ...Object.keys(right)])(
  "startEngine refuses %s by name, whatever it is",
  async (option) => {
    for (const [hostile, make] of Object.entries(hostiles)) {
      const error = await refusalOf({ [option]: make(), env });
      const isNamed = error instanceof InvalidEngineOptionError || error instanceof InvalidEndpointError;
      expect(isNamed, `${hostile}: ${String(error)}`).toBe(true);
    }
  },
);

test.each([7, "x", true, null])(
  "startEngine refuses %j as its options, and as its environment",
  async (given) => {
    for (const options of [given, { env: given }])
      expect(await refusalOf(options)).toBeInstanceOf(InvalidEngineOptionError);
  },
);
