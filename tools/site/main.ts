// `tsx main.ts build` builds the site into dist/; `dev` serves it, and follows what is written in docs/.
import { watch } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { build, createServer } from "vitepress";
import { docs, pages } from "./places.ts";
import { writeReference } from "./reference.ts";

const [command] = process.argv.slice(2);
const site = import.meta.dirname;

await rm(pages, { recursive: true, force: true });
await cp(docs, pages, { recursive: true });
await writeReference(join(pages, "api"));

if (command === "build") {
  await build(site);
} else if (command === "dev") {
  watch(docs, { recursive: true }, (_change, file) => {
    // Ignored: a file that is gone by now, as editors leave them behind.
    if (file !== null) void cp(join(docs, file), join(pages, file), { recursive: true }).catch(() => {});
  });
  const server = await createServer(site);
  await server.listen();
  server.printUrls();
} else {
  throw new Error(`${command} is no command; allowed: build, dev`);
}
