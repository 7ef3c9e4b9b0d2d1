/** The environment variable that says how many may wait at a department, from 1 to 500. @default 10 */
export const mostWaitingVariable = "ADMIT_TICKETS_MOST_WAITING";

/** The environment variable with departments that have a limit of their own: a JSON object, by their names. */
export const limitsVariable = "ADMIT_TICKETS_LIMITS";

/** The environment variable with departments that have several agents: a JSON object of numbers, by their names. */
export const agentsVariable = "ADMIT_TICKETS_AGENTS";

/** The environment variable that says after how many milliseconds of silence a ticket counts as gone. @default 60000 */
export const silenceVariable = "ADMIT_TICKETS_SILENCE_MS";

/**
 * The environment variable that says how many milliseconds a ticket is usually in service: it makes estimates possible.
 * @default - no estimate
 */
export const usualServiceVariable = "ADMIT_TICKETS_USUAL_SERVICE_MS";

/** All keys of departments begin with this. */
export const departmentKeyPrefix = "admit-tickets/";

/** Leases of agents begin with this. Their owners are the tickets in service. */
export const agentKeyPrefix: string = `${departmentKeyPrefix}agent/`;

/** The lease of an agent; the first is 1. */
export function agentKey(department: string, agent: number): string {
  return `${agentKeyPrefix}${agent}/${department}`;
}

/** The lease of a ticket in service. */
export function ticketKey(department: string, ticket: string): string {
  return `${departmentKeyPrefix}ticket/${encodeURIComponent(ticket)}/${department}`;
}

/** The fair locks at which tickets wait: that of appointments, and that of walk-ins. */
export function lineKeys(department: string): readonly string[] {
  return ["appointments", "line"].map((kind) => `${departmentKeyPrefix}${kind}/${department}`);
}

/** The history of the cleaner's runs, which remembers where it stopped. */
export const cleaningKey = "clean-desks";

/** A department's name becomes part of a lock's key. */
export const longestDepartment = 200;

/** As many as the queue of a lock takes. */
const mostWaitingAnywhere = 500;

/** Each event reads the leases of all agents. */
const mostAgents = 20;

/** Reads how many may wait, by department. Throws an error that names the wrong one. */
export function departmentLimits(text: string): ReadonlyMap<string, number> {
  return numbersIn(limitsVariable, text, "limit", mostWaitingAnywhere);
}

/** Reads how many agents serve, by department. Throws an error that names the wrong one. */
export function departmentAgents(text: string): ReadonlyMap<string, number> {
  return numbersIn(agentsVariable, text, "number of agents", mostAgents);
}

function numbersIn(variable: string, text: string, what: string, most: number): ReadonlyMap<string, number> {
  const refusal = (wrong: string, allowed: string): Error =>
    new Error(`the environment variable ${variable} has ${wrong}; allowed: ${allowed}`);
  const numbers = parsed(text);
  if (numbers === undefined)
    throw refusal(text, 'a JSON object of numbers by department, such as {"loans":5}');
  for (const [department, number] of Object.entries(numbers)) {
    if (department === "" || department.length > longestDepartment)
      throw refusal(
        `the department ${JSON.stringify(department)}`,
        `a name of 1 to ${longestDepartment} characters`,
      );
    if (!Number.isSafeInteger(number) || number < 1 || number > most)
      throw refusal(
        `the ${what} ${JSON.stringify(number)} of ${JSON.stringify(department)}`,
        `a whole number from 1 to ${most}`,
      );
  }
  return new Map(Object.entries(numbers));
}

/** The values are still to be checked. */
function parsed(text: string): Readonly<Record<string, number>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, number>>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // Ignored: the refusal shows the text.
  }
  return undefined;
}
