/**
 * A `require` for the modules of Node's that aws4 asks for while it is loaded. aws4 is CommonJS: in a bundle that is an ES
 * module nobody else would answer it, and the bundle would throw at its start.
 */
import crypto from "node:crypto";
import querystring from "node:querystring";
import url from "node:url";

const modules: Readonly<Record<string, unknown>> = { crypto, querystring, url };
const scope = globalThis as { require?: (name: string) => unknown };
const isNeeded = scope.require === undefined;

if (isNeeded) scope.require = (name) => modules[name];

/** Takes it away again; to be called in the same turn, when aws4 has been loaded. */
export function removeRequire(): void {
  if (isNeeded) delete scope.require;
}
