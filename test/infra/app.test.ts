// @module-tag long
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { environmentNames } from "@leasehold/client/environment";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CloudFormationTemplate, resourcesOf } from "../support/cloudformation.ts";
import { cdkContext } from "../support/cloudformation-app.ts";

const run = promisify(execFile);
const tsx = resolve("node_modules/tsx/dist/cli.mjs");

/**
 * A bundle with the SDK's client of DynamoDB alone has 332 KB. The largest, Close, has 476 KB: of its rest the lease client
 * with its job runs is 110 KB, the middleware 14 KB, the document client 13 KB. Every module of these is used: what was last
 * added is closing a client, retries of completions, the order of requests under load, and errors with names.
 */
const mostBytes = 490_000;

let folder: string;
let said: string;
let json: CloudFormationTemplate;
let assets: string[];
let bundles: string[];

// As `cdk synth` does it, with bundles and all validators.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-assembly-"));
  const { CDK_VALIDATION: _, ...outside } = process.env;
  const env = { ...outside, CDK_OUTDIR: folder, CDK_CONTEXT_JSON: JSON.stringify(cdkContext) };
  const args = [tsx, "--conditions=leasehold-source", "infra/app.ts"];
  const { stdout, stderr } = await run(process.execPath, args, { env, maxBuffer: 10_000_000 });
  said = stdout + stderr;
  json = JSON.parse(readFileSync(join(folder, "Leasehold.template.json"), "utf8"));
  assets = readdirSync(folder).filter((name) => name.startsWith("asset."));
  // The handler of LeaseWakeup is not bundled here: it comes with its package.
  bundles = assets.filter((name) => existsSync(join(folder, name, "index.mjs")));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function sourcesOf(asset: string): string[] {
  const { sources } = JSON.parse(readFileSync(join(folder, asset, "index.mjs.map"), "utf8"));
  return sources.map((source: string) => source.replace(/^(\.\.\/)+/, ""));
}

describe("the app, synthesized as a whole", () => {
  test("prints no warning and no finding", () => {
    // npm has opinions of its own about whatever is in its configuration.
    const lines = said.split("\n").filter((line) => !line.startsWith("npm "));
    expect(lines.filter((line) => /warn|error|fail|finding|deprecat|violat|acknowledge/i.test(line))).toEqual(
      [],
    );
    expect(said).toContain("Bundling asset");
  });

  test("has a bundle for each function, and none that is left over", () => {
    const used = resourcesOf(json, "AWS::Lambda::Function").map(
      ([, { Properties }]) => `asset.${(Properties.Code as { S3Key: string }).S3Key.replace(".zip", "")}`,
    );
    expect(used.sort()).toEqual(assets.filter((name) => !name.endsWith(".json")).sort());
    expect(used).toHaveLength(14);
    expect(bundles).toHaveLength(13);
  });
});

describe("the bundles", () => {
  test(`are smaller than ${mostBytes / 1_000} KB`, () => {
    for (const asset of bundles)
      expect(statSync(join(folder, asset, "index.mjs")).size).toBeLessThan(mostBytes);
  });

  test("have every module once: no second copy of the client, of the SDK, or of both its forms", () => {
    for (const asset of bundles) {
      const sources = sourcesOf(asset);
      expect(new Set(sources).size).toBe(sources.length);
      expect(sources.some((source) => source.includes("packages/client/src/"))).toBe(true);
      const second =
        /node_modules\/.*\/node_modules\/|node_modules\/@leasehold\/|packages\/\w+\/dist\/|\/dist-cjs\//;
      expect(sources.filter((source) => second.test(source))).toEqual([]);
    }
  });

  test("have nothing of the tests, of the constructs, or of what runs the app here", () => {
    const foreign = /^(test|infra|demo|bench|packages\/(cdk|local))\/|aws-cdk-lib|vitest|\/testing\//;
    for (const asset of bundles)
      expect(sourcesOf(asset).filter((source) => foreign.test(source))).toEqual([]);
  });

  test("are modules that plain Node loads, with the environment that the template gives, and export a handler", async () => {
    const path = (asset: string): string => join(folder, asset, "index.mjs");
    const names = resourcesOf(json, "AWS::Lambda::Function").flatMap(([, { Properties }]) =>
      Object.keys((Properties.Environment as { Variables: object }).Variables),
    );
    const given = Object.fromEntries(names.map((name) => [name, name.endsWith("_MS") ? "1000" : "shared"]));
    const env = {
      ...given,
      [environmentNames.once]: "true",
      [environmentNames.whenHeld]: "skip",
      AWS_REGION: "eu-west-1",
    };
    const code = `
      import net from "node:net";
      net.Socket.prototype.connect = () => { throw new Error("a bundle uses the network while it loads"); };
      const handlers = [];
      for (const file of ${JSON.stringify(bundles.map(path))}) handlers.push(typeof (await import(file)).handler);
      console.log(JSON.stringify(handlers));
    `;
    const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "--eval", code], {
      env,
      cwd: folder,
    });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual(bundles.map(() => "function"));
  });
});
