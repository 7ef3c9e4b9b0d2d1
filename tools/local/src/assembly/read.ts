// Reads a cloud assembly from its folder: templates, assets and construct paths, nothing resolved yet.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AssetManifestArtifact, CloudAssembly } from "aws-cdk-lib/cx-api";
import { AssemblyError } from "./errors.ts";
import type { RawStack, RawTemplate } from "./types.ts";

/** Files to upload, by the keys that templates name. */
interface AssetManifest {
  readonly files?: Readonly<
    Record<
      string,
      {
        readonly source: { readonly path?: string };
        readonly destinations: Readonly<Record<string, { readonly objectKey: string }>>;
      }
    >
  >;
}

/**
 * Reads a cloud assembly (`cdk.out`), without its stages. Nothing is resolved yet.
 *
 * Throws AssemblyError if there is none.
 */
export function readAssembly(directory: string): RawStack[] {
  if (!existsSync(join(directory, "manifest.json"))) {
    const text = `there is no cloud assembly in ${directory}: synthesize the app first, with cdk synth`;
    throw new AssemblyError(text);
  }
  const assembly = new CloudAssembly(resolve(directory));
  const manifests = assembly.artifacts.filter(AssetManifestArtifact.isAssetManifestArtifact);
  const assets = new Map(manifests.flatMap(({ file }) => assetsIn(assembly.directory, file)));
  return assembly.stacks.map((stack) => {
    const ids = stack.findMetadataByType("aws:cdk:logicalId");
    const paths = new Map(ids.map(({ path, data }) => [String(data), shortened(path.slice(1))]));
    return { name: stack.stackName, template: stack.template as RawTemplate, assets, paths };
  });
}

function assetsIn(directory: string, file: string): [key: string, path: string][] {
  const { files = {} } = JSON.parse(readFileSync(file, "utf8")) as AssetManifest;
  return Object.values(files).flatMap(({ source: { path }, destinations }) =>
    path === undefined
      ? []
      : Object.values(destinations).map(({ objectKey }): [string, string] => [
          objectKey,
          resolve(directory, path),
        ]),
  );
}

/** People write the path of the construct that they made, not of the resource within it. */
function shortened(path: string): string {
  return path.replace(/\/(Resource|Default)$/, "");
}
