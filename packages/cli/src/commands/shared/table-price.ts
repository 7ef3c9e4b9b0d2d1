// The cost of reading a table that is too large to be read without the user's consent.

import type { TableSize } from "../../connection.ts";
import { CommandError, exitCodes } from "../../exit-codes.ts";
import { costText, dollarsText, readCost, unitsText } from "../../view/read-cost.ts";
import { TableTooLargeError } from "../../view/table-snapshot.ts";

/** Reads a table. If it is too large, rejects with the cost of reading all of it. */
export async function priceOfTable<T>(
  describeTable: () => Promise<TableSize | undefined>,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof TableTooLargeError)) throw error;
    // Ignored: an error such as a missing permission must not hide the cost of what was read.
    const size = await describeTable().catch(() => undefined);
    const all =
      size && readCost(Math.max(size.items, error.cost.items), Math.max(size.bytes, error.cost.bytes));
    const whole =
      all === undefined
        ? "there are more"
        : `the table has about ${all.items.toLocaleString("en-US")} items: reading all costs ${unitsText(all.units)} RCU, ${dollarsText(all.dollars)}`;
    const message = `stopped after ${costText(error.cost)}; ${whole}. --scan reads all; leasehold get KEY reads one key`;
    throw new CommandError(message, exitCodes.usage, { cause: error });
  }
}
