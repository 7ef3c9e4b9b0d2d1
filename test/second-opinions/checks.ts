/** The checks of a part. They have no time limit of their own: what is waited for is told when the part is ended. */

/** By what each says, when it passes. */
export type Checks = Readonly<Record<string, () => Promise<void>>>;

const awaited = new Set<string>();

process.once("SIGTERM", () => {
  console.log(`ended while it waited for: ${[...awaited].join("; ")}`);
  // Children that are bound to this process's exit are ended by it.
  process.exit(1);
});

/** Tells, where this process is ended meanwhile, that it waited for this. */
export async function awaiting<T>(what: string, work: () => Promise<T>): Promise<T> {
  awaited.add(what);
  try {
    return await work();
  } finally {
    awaited.delete(what);
  }
}

/** Runs all at once, and says of each whether it passed; tells whether all did. */
export async function pass(part: string, checks: Checks): Promise<boolean> {
  const passed = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        await awaiting(name, check);
        console.log(`${part}: ${name}`);
        return true;
      } catch (error) {
        console.log(`${part}: FAILED: ${name}\n`, error);
        return false;
      }
    }),
  );
  return passed.every(Boolean);
}
