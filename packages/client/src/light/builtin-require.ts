/**
 * A `require` for the Node modules that aws4 needs while it is loaded. aws4 is CommonJS. In a bundle that is an ES
 * module, nothing else would provide `require`, and the bundle would throw at its start.
 */
import crypto from "node:crypto";
import querystring from "node:querystring";
import url from "node:url";

const modules: Readonly<Record<string, unknown>> = { crypto, querystring, url };
const scope = globalThis as { require?: (name: string) => unknown };
const isNeeded = scope.require === undefined;

if (isNeeded) scope.require = (name) => modules[name];

/** Removes it again; call it in the same turn, after aws4 has been loaded. */
export function removeRequire(): void {
  if (isNeeded) delete scope.require;
}
