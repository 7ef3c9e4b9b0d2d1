// The sections of docs/errors.md as text for a terminal. `npm run generate -- error-texts` writes them into the command
// line; a test compares.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { docsAddress } from "../../packages/cli/src/terminal/text.ts";
import { repositoryFolder } from "./prepare.ts";

/** The page's text about each code. */
export function errorTexts(page: string): Readonly<Record<string, string>> {
  const sections = page
    .split(/^(?=##+ )/m)
    .map((section) => [/^### (\w+)$/m.exec(section)?.[1], section] as const);
  return Object.fromEntries(
    sections
      .filter((entry): entry is readonly [string, string] => entry[0] !== undefined)
      .map(([code, section]) => [code, plain(section.replace(/^### .*\n/, "")).trim()]),
  );
}

/** Markdown as a terminal shows it: without emphasis, and with the addresses of links. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]+)\]\(([^)]+)\)/g, (_, text: string, target: string) => {
      const address = /^https?:/.test(target) ? target : docsAddress(target.replace(/^#/, "errors.md#"));
      return `${text} (${address})`;
    })
    .replaceAll("**", "");
}

/** Writes what `leasehold help errors CODE` prints. */
export async function writeErrorTexts(): Promise<void> {
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
}
