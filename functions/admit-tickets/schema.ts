/** The environment variable that says how many may wait at a department, from 1 to 500. @default 10 */
export const mostWaitingVariable = "ADMIT_TICKETS_MOST_WAITING";

/** The environment variable with departments that have a limit of their own: a JSON object, by their names. */
export const limitsVariable = "ADMIT_TICKETS_LIMITS";

/** The environment variable that says after how many milliseconds of silence a ticket counts as gone. @default 60000 */
export const silenceVariable = "ADMIT_TICKETS_SILENCE_MS";

/**
 * The environment variable that says how many milliseconds a ticket is usually in service: a refusal estimates by it when
 * there is room. @default - no estimate
 */
export const usualServiceVariable = "ADMIT_TICKETS_USUAL_SERVICE_MS";

/** Locks of departments begin with this; then comes the department's name. */
export const departmentKeyPrefix = "admit-tickets/";

/** The history of the cleaner's runs, which remembers where it stopped. */
export const cleaningKey = "clean-desks";

/** A department's name becomes part of a lock's key. */
export const longestDepartment = 200;

/** As many as the queue of a lock takes. */
const mostWaitingAnywhere = 500;

/** Reads the departments' own limits from the text of the variable. Throws an error that names the wrong one. */
export function departmentLimits(text: string): ReadonlyMap<string, number> {
  const limits = new Map<string, number>();
  for (const [department, limit] of Object.entries(parsed(text))) {
    if (department === "" || department.length > longestDepartment)
      throw refusal(
        `the department ${JSON.stringify(department)}`,
        `a name of 1 to ${longestDepartment} characters`,
      );
    if (!Number.isSafeInteger(limit) || (limit as number) < 1 || (limit as number) > mostWaitingAnywhere)
      throw refusal(
        `the limit ${JSON.stringify(limit)} of ${JSON.stringify(department)}`,
        `a whole number from 1 to ${mostWaitingAnywhere}`,
      );
    limits.set(department, limit as number);
  }
  return limits;
}

function parsed(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw refusal(text, 'a JSON object of limits by department, such as {"loans":5}');
}

function refusal(what: string, allowed: string): Error {
  return new Error(`the environment variable ${limitsVariable} has ${what}; allowed: ${allowed}`);
}
