/** Writes what VitePress builds the site of: the front page, the docs, and the API reference beside them. */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { docs, pages } from "./links.ts";
import { writeReference } from "./reference.ts";

await rm(pages, { recursive: true, force: true });
await cp(docs, pages, { recursive: true });
// The list of all pages is the navigation of each page here.
await rm(join(pages, "README.md"));
await cp(join(import.meta.dirname, "front.md"), join(pages, "index.md"));
await cp(join(import.meta.dirname, "logo.svg"), join(pages, "public/logo.svg"));
await writeReference(join(pages, "api"));
