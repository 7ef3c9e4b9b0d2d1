/** `prepack` and `postpack`: what npm runs in a package's folder around `npm pack` and `npm publish`. */
import { basename } from "node:path";
import { build } from "./pack.ts";
import { prepare, restore } from "./prepare.ts";

const here = process.cwd();
if (process.argv[2] === "prepack") {
  await build();
  await prepare(here, basename(here));
} else {
  await restore(here);
}
