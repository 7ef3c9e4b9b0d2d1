// Where the packages with the engines are installed: beside this package, in the user's project, or beside the program.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Returns a package's folder. Throws an error with a code if it is not installed. */
export function installedFolder(name: string): string {
  // The published file is CommonJS and has a name. The source is an ES module and has none.
  const own = typeof __filename === "string" ? [__filename] : [];
  const program = process.argv[1] === undefined ? [] : [process.argv[1]];
  const bases = [...own, join(process.cwd(), "package.json"), ...program];
  for (const [index, base] of bases.entries()) {
    try {
      return dirname(createRequire(base).resolve(`${name}/package.json`));
    } catch (error) {
      if (index === bases.length - 1) throw error;
    }
  }
  throw new Error(`${name} is not installed`);
}
