// `tsx main.ts pages` writes what VitePress builds the site of; `follow` copies what is written in docs/ from then on.
import { watch } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { docs, pages } from "./places.ts";

const [command] = process.argv.slice(2);

if (command === "pages") {
  // TypeDoc takes more than a gigabyte, which is free again before VitePress begins.
  const { writeReference } = await import("./reference.ts");
  await rm(pages, { recursive: true, force: true });
  await cp(docs, pages, { recursive: true });
  await writeReference(join(pages, "api"));
} else if (command === "follow") {
  const { createServer } = await import("vitepress");
  watch(docs, { recursive: true }, (_change, file) => {
    // Ignored: a file that is gone by now, as editors leave them behind.
    if (file !== null) void cp(join(docs, file), join(pages, file), { recursive: true }).catch(() => {});
  });
  const server = await createServer(import.meta.dirname);
  await server.listen();
  server.printUrls();
} else {
  throw new Error(`${command} is no command; allowed: pages, follow`);
}
