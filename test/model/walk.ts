/** One walk through a case: with the rules as they are, beside the real expressions, or with a mistake in the rules. */
import type { Mistake } from "./cases.ts";
import { explore, type Found } from "./explore.ts";
import { LockModel, rules, type Setting, type Witness } from "./lock.ts";
import { differenceOf } from "./refinement.ts";

const mostStates = 3_000_000;

/** What a walk has found, and how many different writes it has done with the real expressions too. */
export function walk(setting: Setting, mistake?: Mistake): Found & { readonly writes: number } {
  const seen = new Set<string>();
  // The same request in the same state does the same.
  const witness: Witness = (name, item, sent, after) => {
    const what = JSON.stringify([name, item, sent]);
    if (seen.has(what)) return undefined;
    seen.add(what);
    return differenceOf(name, item, sent, after);
  };
  const model =
    mistake === undefined
      ? new LockModel(setting, rules, witness)
      : new LockModel({ ...setting, ...mistake.setting }, mistake.rules);
  return { ...explore(model, mostStates), writes: seen.size };
}
