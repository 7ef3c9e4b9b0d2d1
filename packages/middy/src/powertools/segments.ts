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

const segmentName = "leasehold.hold";

/**
 * Returns a listener that makes a subsegment of each lease, from its grant to its end. It is the current segment
 * meanwhile, so the subsegments of the work are its children. Leases that are held at the same time are siblings.
 */
export function segmentListener(tracer: SegmentTracer): LeaseEventListener {
  const open = new Map<string, { readonly segment: TraceSegment; readonly parent: TraceSegment }>();
  return (event) => {
    if (event.type === "acquired") {
      const current = tracer.isTracingEnabled() ? tracer.getSegment() : undefined;
      if (current === undefined) return;
      const parent = [...open.values()].find(({ segment }) => segment === current)?.parent ?? current;
      const segment = parent.addNewSubsegment(segmentName);
      segment.addAnnotation("leaseholdKey", event.key);
      segment.addAnnotation("leaseholdFencingToken", event.fencingToken);
      open.set(leaseId(event), { segment, parent });
      tracer.setSegment(segment);
    } else if (event.type === "released" || event.type === "lost") {
      const id = leaseId(event);
      const ended = open.get(id);
      if (ended === undefined) return;
      open.delete(id);
      const { segment, parent } = ended;
      if (event.type === "lost") {
        segment.addAnnotation("leaseholdLostReason", event.reason);
        // A holder that was asked to stop has not failed.
        if (event.reason !== "revoked") segment.addFaultFlag();
      }
      segment.close();
      if (tracer.getSegment() === segment) tracer.setSegment(parent);
    }
  };
}

function leaseId({
  key,
  sortKey,
  fencingToken,
}: Extract<LeaseEvent, { readonly fencingToken: number }>): string {
  return JSON.stringify([key, sortKey, fencingToken]);
}
