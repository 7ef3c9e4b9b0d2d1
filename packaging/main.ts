/**
 * Packs the packages: `tsx packaging/main.ts pack [folder]` writes the archives of all. `prepack` and `postpack` are what
 * npm runs in a package's folder around `npm pack` and `npm publish`.
 */
import { basename, resolve } from "node:path";
import { build, packAll } from "./pack.ts";
import { prepare, restore } from "./prepare.ts";

const [command, folder = "tarballs"] = process.argv.slice(2);
const here = process.cwd();

if (command === "pack") {
  for (const archive of (await packAll(resolve(folder))).values()) console.log(archive);
} else if (command === "prepack") {
  await build();
  await prepare(here, basename(here));
} else if (command === "postpack") {
  await restore(here);
} else {
  throw new Error(`${command} is no command; allowed: pack, prepack, postpack`);
}
