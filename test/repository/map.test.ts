/** The map in CONTRIBUTING.md: every path and name in it exists, and imports go down its floors. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const map = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");

/** Links to files of the repository; the text of one in code style is a name that the file has. */
const links = [...map.matchAll(/\[(?<text>[^\]]+)\]\((?<path>[^)#:]+)\)/g)].map(({ groups }) => ({
  name: /^`(\w+)`$/.exec(groups?.text ?? "")?.[1],
  path: groups?.path ?? "",
}));
const folders = /^(packages|tools|test|functions|infra|docs)(\/|$)/;
const codePaths = [...map.matchAll(/`([^`\s]+)`/g)]
  .map(([, code = ""]) => code)
  .filter((code) => folders.test(code));

/** The floors from the top, and the files and folders of each. */
const floors = map
  .slice(map.indexOf("| floor |"))
  .split("\n\n")[0]
  ?.split("\n")
  .slice(2)
  .map((row) => [...(row.split("|")[2] ?? "").matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path));

/**
 * The floor of a file, counted from the top: that of its most exact entry. Undefined for a file that only passes on others'
 * exports.
 */
function floorOf(file: string): number | undefined {
  const path = relative(root, file);
  const entries = (floors ?? []).flatMap((places, floor) => places.map((place) => ({ place, floor })));
  const own = entries.filter(({ place }) => path === place || path.startsWith(`${place}/`));
  return own.sort((one, other) => other.place.length - one.place.length)[0]?.floor;
}

/** Files that a file uses, types and what is loaded later included. A package's name leads to the package's folder. */
function usedBy(file: string): string[] {
  const source = readFileSync(file, "utf8");
  const imports = source.matchAll(/(?:^(?:import|export) [^;]*?from |\bimport\()"(?<from>[^"]+)"/gm);
  return [...imports].flatMap(({ groups }) => {
    const from = groups?.from ?? "";
    if (from.startsWith(".")) return [resolve(dirname(file), from)];
    const packageName = /^@leasehold\/(jobs|middy|durable|cdk|cli|engine)(?=\/|$)/.exec(from)?.[1];
    if (packageName !== undefined) return [join(root, "packages", packageName)];
    return from.startsWith("@leasehold/local") ? [join(root, "tools/local")] : [];
  });
}

describe("the map", () => {
  it("links to files that exist, and to names that they have", () => {
    const wrong = links.filter(({ name, path }) => {
      const file = join(root, path);
      if (!existsSync(file)) return true;
      return name !== undefined && !new RegExp(`\\b${name}\\b`).test(readFileSync(file, "utf8"));
    });
    expect(wrong).toEqual([]);
    expect(links.length).toBeGreaterThan(50);
  });

  it("names files and folders that exist", () => {
    expect(codePaths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(codePaths.length).toBeGreaterThan(20);
  });

  it("shows in its picture what is there: files, folders and exported names", () => {
    const picture = readFileSync(join(root, "docs/floors.svg"), "utf8");
    const parts = [...picture.matchAll(/class="name"[^>]*>([^<]+)</g)].flatMap(([, names = ""]) =>
      names.split(", "),
    );
    const core = globSync("packages/client/src/core/*.ts", { cwd: root })
      .map((file) => readFileSync(join(root, file), "utf8"))
      .join("\n");
    const without = parts.filter(
      (part) =>
        !existsSync(join(root, part)) &&
        !existsSync(join(root, "packages/client/src", part)) &&
        !new RegExp(`^export (class|interface) ${part}\\b`, "m").test(core),
    );
    expect(without).toEqual([]);
    expect(parts.length).toBeGreaterThan(30);
  });

  it("has a floor for every file of the client", () => {
    const files = globSync("packages/client/src/**/*.ts", { cwd: root });
    expect(files.filter((file) => floorOf(join(root, file)) === undefined)).toEqual([]);
  });

  it("has no circles: of two files at most one uses the other, however far", () => {
    const files = globSync(["{packages,functions,infra,tools}/**/*.ts"], { cwd: root })
      .filter((file) => !/node_modules|\/dist\//.test(file))
      .map((file) => join(root, file));
    const uses = new Map(files.map((file) => [file, usedBy(file)]));
    expect(files.length).toBeGreaterThan(400);
    // Files that use nothing that is left are taken away, until only circles are left.
    let left = files;
    for (let before = Number.NaN; left.length !== before; ) {
      before = left.length;
      const known = new Set(left);
      left = left.filter((file) => uses.get(file)?.some((used) => known.has(used)));
    }
    expect(left.map((file) => relative(root, file))).toEqual([]);
  });

  it("shows what each floor may use: none uses a floor above its own", () => {
    const files = globSync("{packages/*/src,tools/local/src,functions,infra}/**/*.ts", { cwd: root })
      .map((file) => join(root, file))
      .filter((file) => statSync(file).isFile());
    const upwards = files.flatMap((file) => {
      const own = floorOf(file);
      if (own === undefined) return [];
      return usedBy(file)
        .filter((used) => (floorOf(used) ?? own) < own)
        .map((used) => `${relative(root, file)} uses ${relative(root, used)}`);
    });
    expect(files.length).toBeGreaterThan(300);
    expect(upwards).toEqual([]);
  });
});
