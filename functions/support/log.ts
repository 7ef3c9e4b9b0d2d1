/** Writes a line for people, queries and alarms. */
export function warn(message: string, fields: Readonly<Record<string, unknown>>): void {
  console.log(JSON.stringify({ time: new Date().toISOString(), level: "WARN", message, ...fields }));
}
