// The code blocks of the pages that users read. A block runs as it stands, or a comment above it says how, or why not.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The pages whose blocks readers paste into projects of their own. */
export const pages: readonly string[] = globSync(
  ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "packages/*/README.md", "tools/site/front.md"],
  { cwd: root },
).sort();

/**
 * What the comment above a block says:
 *
 * - `<!-- example: continues -->`: the block goes on where the block before it on the page ended;
 * - `<!-- example: handler with {"key": 1} -->`: its `handler` is called with that event;
 * - `<!-- example: until SIGTERM -->`: it runs until it is told to end, and ends then;
 * - `<!-- example: types-only, because … -->`: it compiles, and cannot run on this machine;
 * - `<!-- example: text-only, because … -->`: it is neither compiled nor run.
 */
export type Directive =
  | { readonly kind: "continues" }
  | { readonly kind: "handler"; readonly event: unknown }
  | { readonly kind: "until SIGTERM" }
  | { readonly kind: "types-only" | "text-only"; readonly reason: string };

/** A fenced block of a page. */
export interface Block {
  readonly page: string;
  /** Where the block's fence is; the first line of a page is 1. */
  readonly line: number;
  /** As the fence names it; empty where it names none. */
  readonly language: string;
  readonly code: string;
  readonly directive: Directive | undefined;
}

/** The blocks of a page, from top to bottom. Throws where a comment above a block cannot be understood. */
export function blocksOf(page: string, text: string = readFileSync(join(root, page), "utf8")): Block[] {
  const fences = text.matchAll(
    /(?:^ *<!-- *example:(?<said>.*?)-->\n+)?^(?<indent> *)```(?<language>\w*)[^\n]*\n(?<code>.*?)^ *```$/gms,
  );
  return [...fences].map((match) => {
    const { said, indent = "", language = "", code = "" } = match.groups ?? {};
    const before = text.slice(0, match.index + match[0].indexOf("```"));
    const line = before.split("\n").length;
    const place = `${page}:${line}`;
    return {
      page,
      line,
      language,
      code: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      directive: said === undefined ? undefined : directiveOf(said.trim(), place),
    };
  });
}

function directiveOf(said: string, place: string): Directive {
  if (said === "continues" || said === "until SIGTERM") return { kind: said };
  const event = /^handler with (.+)$/s.exec(said)?.[1];
  if (event !== undefined) return { kind: "handler", event: JSON.parse(event) as unknown };
  const excuse = /^(types-only|text-only), because (\w.*)$/s.exec(said);
  const [, kind, reason] = excuse ?? [];
  if ((kind === "types-only" || kind === "text-only") && reason !== undefined) return { kind, reason };
  throw new Error(
    `${place} says "example: ${said}"; allowed: continues; handler with {…}; until SIGTERM; ` +
      "types-only, because …; text-only, because …",
  );
}
