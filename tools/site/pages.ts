// Writes what VitePress builds the site of. It runs alone: TypeDoc takes more than a gigabyte, which is free again then.
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { docs, pages } from "./places.ts";
import { writeReference } from "./reference.ts";

await rm(pages, { recursive: true, force: true });
await cp(docs, pages, { recursive: true });
await writeReference(join(pages, "api"));
