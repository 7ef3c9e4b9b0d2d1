import type { LeaseEvent, LeaseEventListener } from "@leasehold/client";

/** A segment of X-Ray, as far as it is used here. */
export interface TraceSegment {
  addNewSubsegment(name: string): TraceSegment;
  addAnnotation(key: string, value: string | number): void;
  addFaultFlag(): void;
  close(): void;
}

/** The Tracer of Powertools, as far as it is used here. */
export interface SegmentTracer {
  isTracingEnabled(): boolean;
  getSegment(): TraceSegment | undefined;
  setSegment(segment: TraceSegment): void;
}

/** The segment of a lease that is held, and the one around it. */
interface OpenSegment {
  readonly listener: LeaseEventListener;
  readonly id: string;
  readonly segment: TraceSegment;
  readonly parent: TraceSegment;
}

const segmentName = "leasehold.hold";

/** Those of all listeners: two middlewares of a chain have a listener each, and one trace. */
const openOf = new WeakMap<SegmentTracer, OpenSegment[]>();

/**
 * Returns a listener that makes a subsegment of each lease, from its grant to its end. It is the current segment
 * meanwhile, so the subsegments of the work are its children. Leases that are held at the same time are siblings.
 */
export function segmentListener(tracer: SegmentTracer): LeaseEventListener {
  // The latest last: locks of two tables may have one key and fencing token, and the inner one ends first.
  const open = openOf.get(tracer) ?? [];
  openOf.set(tracer, open);
  const listener: LeaseEventListener = (event) => {
    if (event.type === "acquired") {
      const current = tracer.isTracingEnabled() ? tracer.getSegment() : undefined;
      if (current === undefined) return;
      const parent = open.find(({ segment }) => segment === current)?.parent ?? current;
      const segment = parent.addNewSubsegment(segmentName);
      segment.addAnnotation("leaseholdKey", event.key);
      segment.addAnnotation("leaseholdFencingToken", event.fencingToken);
      open.push({ listener, id: leaseId(event), segment, parent });
      tracer.setSegment(segment);
    } else if (event.type === "released" || event.type === "lost") {
      const id = leaseId(event);
      const index = open.findLastIndex((each) => each.listener === listener && each.id === id);
      const [ended] = index < 0 ? [] : open.splice(index, 1);
      if (ended === undefined) return;
      const { segment, parent } = ended;
      if (event.type === "lost") {
        segment.addAnnotation("leaseholdLostReason", event.reason);
        // A holder that was asked to stop has not failed.
        if (event.reason !== "revoked") segment.addFaultFlag();
      }
      segment.close();
      if (tracer.getSegment() !== segment) return;
      const around = open.findLast((each) => each.parent === parent);
      tracer.setSegment(around?.segment ?? parent);
    }
  };
  return listener;
}

function leaseId({
  key,
  sortKey,
  fencingToken,
}: Extract<LeaseEvent, { readonly fencingToken: number }>): string {
  return JSON.stringify([key, sortKey, fencingToken]);
}
