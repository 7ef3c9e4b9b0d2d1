import type { Inquiry, TicketsEvidence } from "./evidence.ts";

/** How long a ticket was in service for certain, as its owner knew it: it may have been so for longer. */
export interface Service {
  readonly department: string;
  readonly ticket: string;
  /** When its owner learnt of it: not before it began. */
  readonly from: number;
  /** When its owner asked for its end, or when it might have been silent for too long: not after it ended. */
  readonly until: number;
}

/** The services, in the order in which they began. */
export function servicesIn({ arrivals, inquiries, silenceMs }: TicketsEvidence): Service[] {
  const services = arrivals.flatMap(({ department, ticket }) => {
    const own = inquiries.filter((one) => one.ticket === ticket && one.department === department);
    const serving = own.filter(isServing);
    const [first] = serving;
    if (first === undefined) return [];
    const end = own.find(({ action }) => action === "next")?.sentAt ?? Number.POSITIVE_INFINITY;
    // What was answered otherwise prolonged nothing.
    const lastHeardOf = Math.max(...serving.map(({ sentAt }) => sentAt));
    return [{ department, ticket, from: first.answeredAt, until: Math.min(end, lastHeardOf + silenceMs) }];
  });
  return services.sort((one, other) => one.from - other.from);
}

/** Counts the services that began before the one before, in the same department, had ended. */
export function overlapping(services: readonly Service[]): number {
  const departments = [...Map.groupBy(services, ({ department }) => department).values()];
  return departments.flatMap((own) =>
    own.filter((service, index) => own.slice(0, index).some(({ until }) => service.from < until)),
  ).length;
}

/** Whether two departments served at the same time. */
export function areSideBySide(services: readonly Service[]): boolean {
  return services.some((one) =>
    services.some(
      (other) => one.department !== other.department && one.from < other.until && other.from < one.until,
    ),
  );
}

function isServing({ answer }: Inquiry): boolean {
  return "state" in answer && answer.state === "serving";
}
