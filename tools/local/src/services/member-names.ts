// The spelling of members in service integrations.

import type { Members } from "./operations.ts";

/** Spells the members with a small first letter, as the Step Functions API has them. Values stay as they are. */
export function camelCase(members: Members): Members {
  return mapNames(members, (first) => first.toLowerCase());
}

/** Spells the members with a capital first letter, as a state machine has them. Values stay as they are. */
export function pascalCase(members: Members): Members {
  return mapNames(members, (first) => first.toUpperCase());
}

function mapNames(members: Members, first: (letter: string) => string): Members {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [first(name.charAt(0)) + name.slice(1), value]),
  );
}

/** Writes times as ISO texts, and drops what JSON cannot carry. */
export function withIsoDates(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
