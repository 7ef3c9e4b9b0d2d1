/** Writes what VitePress builds the site of: the docs, and the API reference beside them. */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { docs, pages } from "./places.ts";
import { writeReference } from "./reference.ts";

await rm(pages, { recursive: true, force: true });
await cp(docs, pages, { recursive: true });
await writeReference(join(pages, "api"));
