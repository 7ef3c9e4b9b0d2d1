import type { ProcessEvent } from "../history.ts";

/** A time in which something may have kept a process from its requests. */
export interface Disturbance {
  readonly from: number;
  readonly to: number;
}

/** Which event begins a disturbance, and which one ends it. */
const endOf: ReadonlyMap<string, string> = new Map([
  ["freeze", "thaw"],
  ["foul", "fair"],
]);

/** When each process was frozen, or had a network that lost or delayed its requests. */
export function disturbances(events: readonly ProcessEvent[]): ReadonlyMap<string, readonly Disturbance[]> {
  const ofProcesses = [...Map.groupBy(events, ({ process }) => process)].map(([process, own]) => {
    const found = own.flatMap(({ event, at }, index): Disturbance[] => {
      const end = endOf.get(event);
      if (end === undefined) return [];
      const ended = own.slice(index).find((later) => later.event === end);
      return [{ from: at, to: ended?.at ?? Number.POSITIVE_INFINITY }];
    });
    return [process, found] as const;
  });
  return new Map(ofProcesses);
}

/** Whether a process was disturbed at any moment between two others. */
export function meets(all: readonly Disturbance[] | undefined, from: number, to: number): boolean {
  return all?.some((each) => each.from <= to && from <= each.to) ?? false;
}
