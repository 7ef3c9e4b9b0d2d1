// Reads a cloud assembly from its folder: templates, assets and construct paths, nothing resolved yet.

import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AssemblyError } from "./errors.ts";
import type { RawStack, RawTemplate } from "./types.ts";

interface Artifact {
  readonly type: string;
  readonly properties?: {
    readonly templateFile?: string;
    readonly stackName?: string;
    readonly file?: string;
  };
  readonly metadata?: Metadata;
  readonly additionalMetadataFile?: string;
}

type Metadata = Readonly<Record<string, readonly { readonly type: string; readonly data?: unknown }[]>>;

interface AssetManifest {
  readonly files?: Readonly<
    Record<
      string,
      {
        readonly source: { readonly path?: string; readonly packaging?: string };
        readonly destinations: Readonly<Record<string, { readonly objectKey: string }>>;
      }
    >
  >;
}

/**
 * Reads a cloud assembly (`cdk.out`), without its stages. Nothing is resolved yet.
 *
 * Rejects with AssemblyError if there is no manifest, or if a file of it is missing or is not JSON.
 */
export async function readAssembly(directory: string): Promise<RawStack[]> {
  const manifest = await readManifest(directory);
  const artifacts = Object.entries(manifest.artifacts ?? {});
  const assets = new Map<string, string>();
  for (const [, artifact] of artifacts) {
    if (artifact.type === "cdk:asset-manifest") await addAssets(directory, artifact, assets);
  }
  const stacks: RawStack[] = [];
  for (const [id, artifact] of artifacts) {
    const { templateFile } = artifact.properties ?? {};
    if (artifact.type !== "aws:cloudformation:stack" || !templateFile) continue;
    const template = (await readJson(join(directory, templateFile))) as RawTemplate;
    const name = artifact.properties?.stackName ?? id;
    stacks.push({ name, template, assets, paths: await pathsOf(directory, artifact) });
  }
  return stacks;
}

async function readManifest(
  directory: string,
): Promise<{ readonly artifacts?: Readonly<Record<string, Artifact>> }> {
  const file = join(directory, "manifest.json");
  try {
    return JSON.parse(await readFile(file, "utf8")) as { artifacts?: Record<string, Artifact> };
  } catch (cause) {
    const text = `there is no cloud assembly in ${directory}: synthesize the app first, with cdk synth`;
    throw new AssemblyError(text, { cause });
  }
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    const text = `the cloud assembly is damaged: ${file} cannot be read as JSON`;
    throw new AssemblyError(text, { cause });
  }
}

async function addAssets(directory: string, artifact: Artifact, assets: Map<string, string>): Promise<void> {
  const file = artifact.properties?.file;
  if (!file) return;
  const manifest = (await readJson(join(directory, file))) as AssetManifest;
  for (const asset of Object.values(manifest.files ?? {})) {
    for (const destination of Object.values(asset.destinations)) {
      if (asset.source.path) assets.set(destination.objectKey, resolve(directory, asset.source.path));
    }
  }
}

/** Where the CDK has put the construct paths depends on its version and on how the app was synthesized. */
async function pathsOf(directory: string, artifact: Artifact): Promise<ReadonlyMap<string, string>> {
  const file = artifact.additionalMetadataFile;
  const more = file ? ((await readJson(join(directory, file))) as Metadata) : {};
  const paths = new Map<string, string>();
  for (const [path, entries] of Object.entries({ ...artifact.metadata, ...more })) {
    for (const { type, data } of entries) {
      if (type === "aws:cdk:logicalId" && typeof data === "string") paths.set(data, shortened(path.slice(1)));
    }
  }
  return paths;
}

/** People write the path of the construct that they made, not of the resource within it. */
function shortened(path: string): string {
  return path.replace(/\/(Resource|Default)$/, "");
}
