// Finds a resource of the app by any of its names. An ambiguous name is an error, not a guess.

import type { ResourceName } from "../assembly/types.ts";

/** Nothing in the app, or more than one thing, is called like this; the message lists what there is. */
export class UnknownResourceError extends Error {
  constructor(kind: string, id: string, known: readonly ResourceName[], isAmbiguous: boolean) {
    const names = known.map(({ path, logicalId }) => path ?? logicalId).join(", ");
    const problem = isAmbiguous ? `more than one ${kind} is` : `no ${kind} is`;
    super(`${problem} called ${JSON.stringify(id)}; there are: ${names === "" ? "none" : names}`);
    this.name = "UnknownResourceError";
  }
}

/**
 * Finds a resource by its logical id, physical name, ARN, or the end of its construct path (`Orders/Close`).
 *
 * @throws UnknownResourceError
 */
export function findResource<Resource extends ResourceName>(
  kind: string,
  resources: readonly Resource[],
  id: string,
): Resource {
  const exact = resources.filter(({ logicalId, name, arn, path }) =>
    [logicalId, name, arn, path].includes(id),
  );
  const matches = exact.length > 0 ? exact : resources.filter(({ path }) => path?.endsWith(`/${id}`));
  const [match, ...others] = matches;
  if (match !== undefined && others.length === 0) return match;
  throw new UnknownResourceError(kind, id, resources, others.length > 0);
}
