import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEngine } from "@leasehold/engine";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where the engine of this run answers, and how to sign for it. */
    engine: {
      readonly name: string;
      readonly version: string;
      readonly clientConfig: Record<string, unknown>;
    };
    /** A folder for what the tests of this run share; empty at the start, and gone at the end. */
    sharedFolder: string;
  }
}

/** Starts one engine for all tests of the run; without one they fail, and say how to get one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const engine = await startEngine();
  const { name, version, clientConfig } = engine;
  project.provide("engine", { name, version, clientConfig: { ...clientConfig } });
  const sharedFolder = await mkdtemp(join(tmpdir(), "leasehold-tests-"));
  project.provide("sharedFolder", sharedFolder);
  return async () => {
    await rm(sharedFolder, { recursive: true, force: true });
    await engine.stop();
  };
}
