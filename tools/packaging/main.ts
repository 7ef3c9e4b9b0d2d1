/**
 * Packs the packages: `tsx tools/packaging/main.ts pack [folder]` writes the archives of all, with their hashes; `publish-check
 * [folder]` does all that npm does before it publishes these, or those of now; `version 1.2.3` gives all of them a version; `api` writes what users can import of them;
 * `python [folder]` makes the Python package of the constructs. `audit
 * [--must-ask]` looks at all that is installed, and `sbom [folder]` writes what each package brings. `prepack` and `postpack`
 * are what npm runs in a package's folder around `npm pack` and `npm publish`.
 */
import { basename, resolve } from "node:path";
import { writeApiReports } from "./api-report.ts";
import { advisories, auditProblems } from "./audit.ts";
import { build, packAll } from "./pack.ts";
import { prepare, restore } from "./prepare.ts";
import { checkPublishing } from "./publish.ts";
import { packPython } from "./python.ts";
import { writeBills } from "./sbom.ts";
import { setVersion } from "./version.ts";

const [command, argument] = process.argv.slice(2);
const here = process.cwd();

if (command === "pack") {
  for (const archive of (await packAll(resolve(argument ?? "tarballs"))).values()) console.log(archive);
} else if (command === "publish-check") {
  for (const { name, warnings } of await checkPublishing(argument && resolve(argument))) {
    console.log([name, ...warnings].join("\n"));
    if (warnings.length > 0) process.exitCode = 1;
  }
} else if (command === "python") {
  console.log(await packPython(resolve(argument ?? "python")));
} else if (command === "version") {
  await setVersion(argument ?? "", new Date().toISOString().slice(0, 10));
} else if (command === "api") {
  await build();
  await writeApiReports();
} else if (command === "audit") {
  const problems = await auditProblems();
  const known = await advisories();
  for (const problem of problems) console.log(problem);
  if (problems.length === 0) console.log("origins, hashes, licences, scripts and versions: nothing is wrong");
  if ("notAsked" in known) {
    console.log(`the registry's advisories could not be asked for: ${known.notAsked}`);
    // Without the registry nobody knows: that is no answer where a release depends on it.
    if (argument === "--must-ask") process.exitCode = 1;
  } else {
    for (const each of known.production) console.log(`users get ${each}`);
    for (const each of known.development) console.log(`for development alone: ${each}`);
    console.log(`advisories: ${known.production.length} on what users get`);
    if (known.production.length > 0) process.exitCode = 1;
  }
  if (problems.length > 0) process.exitCode = 1;
} else if (command === "sbom") {
  for (const file of await writeBills(resolve(argument ?? "sbom"))) console.log(file);
} else if (command === "prepack") {
  await build();
  await prepare(here, basename(here));
} else if (command === "postpack") {
  await restore(here);
} else {
  throw new Error(
    `${command} is no command; allowed: pack, publish-check, python, version, api, audit, sbom, prepack, postpack`,
  );
}
