import type jsonata from "jsonata";

/** What an expression may read where it stands. */
export interface ExpressionPlace {
  /** Whether it belongs to a catcher: nothing else has `$states.errorOutput`. */
  readonly inCatcher: boolean;
}

/** Parts of a node that look at the values that the node is about: predicates, groups and transforms. */
const withContext: readonly string[] = ["predicate", "stages", "group", "pattern", "update", "delete"];

/**
 * Says what Step Functions refuses in an expression that the jsonata package compiles.
 *
 * Step Functions runs JSONata 2.0: without `??` and `?:`, which came in 2.1, and without `$eval`. There is no
 * document to query either, so `$`, `$$` and bare names have nothing to start from; it refuses them at creation.
 */
export function refusedIn(source: string, ast: jsonata.ExprNode, place: ExpressionPlace): string[] {
  const refused = new Set<string>();
  visit(ast, false);
  return [...refused];

  function visit(node: unknown, hasContext: boolean): void {
    if (Array.isArray(node)) {
      for (const member of node) visit(member, hasContext);
      return;
    }
    if (typeof node !== "object" || node === null || node instanceof RegExp) return;
    const { type, value, position, ...rest } = node as Record<string, unknown>;
    if (type === "condition" && typeof position === "number") {
      // jsonata turns both operators into plain conditions; the position that it keeps is the operator's end.
      const operator = source.slice(position - 2, position);
      if (operator === "??" || operator === "?:")
        refused.add(`the operator ${operator} does not exist there`);
    }
    if (type === "variable") {
      if (value === "eval") refused.add("$eval is not available, use $parse");
      if (value === "$" || (value === "" && !hasContext)) {
        refused.add(`there is no document for $${String(value)} to stand for`);
      }
    }
    if (!hasContext && (type === "name" || type === "wildcard" || type === "descendant")) {
      refused.add(`a reference to ${JSON.stringify(value ?? type)} at the top level is not supported`);
    }
    if (type === "path") checkPath(rest.steps, hasContext);
    for (const [key, child] of Object.entries(rest)) {
      if (key === "steps") continue;
      visit(child, hasContext || withContext.includes(key));
    }
  }

  function checkPath(steps: unknown, hasContext: boolean): void {
    if (!Array.isArray(steps)) return;
    const [first, second] = steps as Array<{ type?: string; value?: unknown }>;
    if (first?.type === "variable" && first.value === "states" && second?.value === "errorOutput") {
      if (!place.inCatcher) refused.add("$states.errorOutput exists only in a catcher");
    }
    steps.forEach((step, index) => {
      visit(step, hasContext || index > 0);
    });
  }
}
