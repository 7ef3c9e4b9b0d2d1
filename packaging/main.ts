/**
 * Packs and publishes the packages: `tsx packaging/main.ts pack [folder]` writes the archives of all; `publish [--dry-run]`
 * sends them to npm; `version 1.2.3` gives all of them a version; `api` writes what users can import of them. `prepack` and
 * `postpack` are what npm runs in a package's folder around `npm pack` and `npm publish`.
 */
import { basename, resolve } from "node:path";
import { writeApiReports } from "./api-report.ts";
import { build, packAll } from "./pack.ts";
import { prepare, restore } from "./prepare.ts";
import { publishAll } from "./publish.ts";
import { setVersion } from "./version.ts";

const [command, argument] = process.argv.slice(2);
const here = process.cwd();

if (command === "pack") {
  for (const archive of (await packAll(resolve(argument ?? "tarballs"))).values()) console.log(archive);
} else if (command === "publish") {
  for (const { name, warnings } of await publishAll({ dryRun: argument === "--dry-run" })) {
    console.log([name, ...warnings].join("\n"));
    if (warnings.length > 0) process.exitCode = 1;
  }
} else if (command === "version") {
  await setVersion(argument ?? "", new Date().toISOString().slice(0, 10));
} else if (command === "api") {
  await build();
  await writeApiReports();
} else if (command === "prepack") {
  await build();
  await prepare(here, basename(here));
} else if (command === "postpack") {
  await restore(here);
} else {
  throw new Error(`${command} is no command; allowed: pack, publish, version, api, prepack, postpack`);
}
