/** What `npm run release` can do. Folders are of the one in which it was started. */
import { resolve } from "node:path";
import { advisories, auditProblems } from "./audit.ts";
import { makeBinary } from "./binary.ts";
import { checkPublishing, packAll } from "./pack.ts";
import { packPython } from "./python.ts";
import { writeBills } from "./sbom.ts";
import { setVersion } from "./version.ts";

/** Gives all packages a version. */
export async function version(given = ""): Promise<void> {
  await setVersion(given, new Date().toISOString().slice(0, 10));
}

/** Looks at all that is installed. */
export async function audit(flag?: string): Promise<void> {
  const problems = await auditProblems();
  const known = await advisories();
  for (const problem of problems) console.log(problem);
  if (problems.length === 0) console.log("origins, hashes, licences, scripts and versions: nothing is wrong");
  if ("notAsked" in known) {
    console.log(`the registry's advisories could not be asked for: ${known.notAsked}`);
    // Without the registry nobody knows: that is no answer where a release depends on it.
    if (flag === "--must-ask") process.exitCode = 1;
  } else {
    for (const each of known.production) console.log(`users get ${each}`);
    for (const each of known.development) console.log(`for development alone: ${each}`);
    console.log(`advisories: ${known.production.length} on what users get`);
    if (known.production.length > 0) process.exitCode = 1;
  }
  if (problems.length > 0) process.exitCode = 1;
}

/** Writes the archives of all packages, with their hashes. */
export async function pack(folder = "tarballs"): Promise<void> {
  for (const archive of (await packAll(resolve(folder))).values()) console.log(archive);
}

/** Does all that npm does before it publishes the archives of a folder, or those of now. */
export async function publishCheck(folder?: string): Promise<void> {
  for (const { name, warnings } of await checkPublishing(folder && resolve(folder))) {
    console.log([name, ...warnings].join("\n"));
    if (warnings.length > 0) process.exitCode = 1;
  }
}

/** Writes what each package brings. */
export async function sbom(folder = "sbom"): Promise<void> {
  for (const file of await writeBills(resolve(folder))) console.log(file);
}

/** Makes the Python package of the constructs. */
export async function python(folder = "python"): Promise<void> {
  console.log(await packPython(resolve(folder)));
}

/** Makes the command line as one file. */
export async function binary(folder = "binary"): Promise<void> {
  console.log(await makeBinary(resolve(folder)));
}
