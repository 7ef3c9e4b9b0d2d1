// Options of the engine: refused by name before anything is looked for or started. An endpoint that is none keeps right options
// from starting one.

import { InvalidEndpointError, InvalidEngineOptionError, startEngine } from "@leasehold/engine";
import fc from "fast-check";
import { expect } from "vitest";
import { fuzz } from "./fuzz.ts";
import { hostileValue, made, mostly, type Recipe } from "./hostile.ts";

const env = { DYNAMODB_ENDPOINT: "no address" };
const known = {
  engine: hostileValue,
  port: mostly(fc.constantFrom(0, 8_000, 65_535)),
  dataDir: mostly(fc.constant("data")),
  signal: mostly(fc.constant(new AbortController().signal)),
};
const options = fc.record(known, { requiredKeys: [] });

fuzz(
  "startEngine refuses any wrong option by name",
  options,
  async (recipes) => {
    const given = Object.entries(recipes as Record<string, Recipe>).map(([name, recipe]) => [
      name,
      made(recipe),
    ]);
    const error: unknown = await startEngine({ ...Object.fromEntries(given), env }).catch(
      (reason: unknown) => reason,
    );
    expect(
      error instanceof InvalidEngineOptionError || error instanceof InvalidEndpointError,
      String(error),
    ).toBe(true);
    return error instanceof InvalidEndpointError ? Object.keys(recipes) : undefined;
  },
  { few: 200, many: 10_000, accepted: { share: 0.05, options: ["port", "dataDir", "signal"] } },
);

fuzz(
  "startEngine refuses what is no object of options",
  fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null)),
  async (given) => {
    await expect(startEngine(given as never)).rejects.toBeInstanceOf(InvalidEngineOptionError);
    await expect(startEngine({ env: given as never })).rejects.toBeInstanceOf(InvalidEngineOptionError);
  },
);
