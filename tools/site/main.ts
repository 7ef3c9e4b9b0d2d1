// Builds the site of the pages that pages.ts has written. `tsx main.ts dev` serves it, and follows what is written in docs/.
import { watch } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { build, createServer } from "vitepress";
import { docs, pages } from "./places.ts";

const [command] = process.argv.slice(2);

if (command === undefined) {
  await build(import.meta.dirname);
} else if (command === "dev") {
  watch(docs, { recursive: true }, (_change, file) => {
    // Ignored: a file that is gone by now, as editors leave them behind.
    if (file !== null) void cp(join(docs, file), join(pages, file), { recursive: true }).catch(() => {});
  });
  const server = await createServer(import.meta.dirname);
  await server.listen();
  server.printUrls();
} else {
  throw new Error(`${command} is no command; allowed: none, or dev`);
}
