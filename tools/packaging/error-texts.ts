// Writes what `leasehold help errors CODE` prints, from docs/errors.md: `npm run generate -- error-texts`.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorTexts } from "./error-page.ts";
import { repositoryFolder } from "./prepare.ts";

const page = await readFile(join(repositoryFolder, "docs/errors.md"), "utf8");
const entries = Object.entries(errorTexts(page)).map(
  ([code, text]) => `  ${code}: ${JSON.stringify(text)},\n`,
);
const source = `// Written by \`npm run generate -- error-texts\` from docs/errors.md.

/** What each error code means, when it comes and what to do. */
export const texts: Readonly<Record<string, string>> = {
${entries.join("")}};
`;
await writeFile(join(repositoryFolder, "packages/cli/src/error-texts.ts"), source);
