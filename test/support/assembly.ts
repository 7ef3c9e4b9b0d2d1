import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";
import { synthesize } from "../../tools/demo/synthesis.ts";
import { withDefinitions } from "./definitions.ts";
import { patienceMs } from "./patience.ts";

/**
 * The folder of the app of this repository, synthesized at the pace of a demonstration.
 *
 * The first test file of the run that asks for it synthesizes, and the others wait: it takes some seconds, and runs
 * that do not ask pay nothing.
 */
export async function sharedAssembly(): Promise<string> {
  const folder = join(inject("sharedFolder"), "cdk.out");
  const [done, failed] = [`${folder}.done`, `${folder}.failed`];
  const isFirst = await mkdir(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
  if (isFirst) {
    try {
      await synthesize(folder, AbortSignal.timeout(patienceMs));
      await appear(done, "");
    } catch (error) {
      await appear(failed, String(error));
      throw error;
    }
  }
  const deadline = performance.now() + patienceMs;
  while (!existsSync(done)) {
    if (existsSync(failed)) throw new Error(await readFile(failed, "utf8"));
    if (performance.now() > deadline) throw new Error("the app was not synthesized in time");
    await delay(50);
  }
  return folder;
}

/** A file that appears with all that it holds. */
async function appear(file: string, content: string): Promise<void> {
  await writeFile(`${file}.part`, content);
  await rename(`${file}.part`, file);
}

/** The template's resources, as far as tests change them. */
export type Resources = Record<
  string,
  { readonly Type: string; readonly Properties: Record<string, unknown> } | undefined
>;

/** The same app with something changed in its template, in a folder of its own; definitions are in the template. */
export async function changedAssembly(name: string, change: (resources: Resources) => void): Promise<string> {
  const folder = join(inject("sharedFolder"), name);
  await cp(await sharedAssembly(), folder, { recursive: true });
  const file = join(folder, "Leasehold.template.json");
  const template = JSON.parse(await readFile(file, "utf8")) as { readonly Resources: Resources };
  const Resources = withDefinitions(template.Resources, folder);
  change(Resources);
  await writeFile(file, JSON.stringify({ ...template, Resources }));
  return folder;
}
