import crypto from "node:crypto";
import querystring from "node:querystring";
import url from "node:url";

const modules: Readonly<Record<string, unknown>> = { crypto, querystring, url };

/**
 * Loads aws4 with a global `require` for the Node modules that it needs. aws4 is CommonJS. In a bundle that is an ES
 * module, nothing else would provide `require`, and aws4 would throw while it is loaded.
 */
export async function withBuiltinRequire<T>(load: () => Promise<T>): Promise<T> {
  // The code that has called sees no `require`: in a bundle, aws4 is loaded between two turns of its own.
  await undefined;
  const scope = globalThis as { require?: (name: string) => unknown };
  if (scope.require !== undefined) return await load();
  scope.require = (name) => modules[name];
  try {
    return await load();
  } finally {
    delete scope.require;
  }
}
