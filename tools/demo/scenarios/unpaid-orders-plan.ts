import type { Order } from "../../../functions/close-unpaid-orders/orders.ts";
import type { ShopState } from "../../../functions/close-unpaid-orders/shop-table.ts";

/**
 * What goes wrong in a tick.
 *
 * - `deliveredTwice`: when the run is over, everybody gets the same trigger once more.
 * - `killed`: the running instance gets SIGKILL in mid-run, and its write on the way is lost.
 * - `frozen`: the running instance gets SIGSTOP in mid-run, its lease checked and its write on the way.
 * - `woken`: that write arrives as soon as another has taken over, before that one writes, and the frozen one gets SIGCONT.
 */
export type Mishap = "deliveredTwice" | "killed" | "frozen" | "woken";

/** One tick: how many orders become overdue for it, and what goes wrong. */
export interface Step {
  readonly orders: number;
  readonly mishap?: Mishap;
}

/** How far apart ticks are, where nothing is stretched: a job that runs every minute, on a smaller scale. */
export const plannedTickMs = 2_000;
/** How many times the trigger of a tick is delivered, all at once; each finds an instance of its own. */
export const deliveriesAtOnce = 4;

/** The ticks of the demonstration. */
export const plan: readonly Step[] = [
  { orders: 5 },
  { orders: 4 },
  { orders: 3, mishap: "deliveredTwice" },
  { orders: 5 },
  { orders: 6, mishap: "killed" },
  { orders: 3 },
  { orders: 5 },
  { orders: 6, mishap: "frozen" },
  { orders: 3, mishap: "woken" },
  { orders: 5 },
];

/** In a tick that goes wrong, the run is stopped before this order, counted from 0. */
export const holdAt: Partial<Record<Mishap, number>> = { killed: 2, frozen: 2, woken: 0 };

const products = ["mug", "shirt", "poster", "lamp"];
const shelf = 100;
const dayMs = 24 * 60 * 60 * 1000;

/** When a tick is scheduled, counted from 1; a late trigger carries this time all the same. */
export function scheduledAt(firstTickAt: number, tick: number, tickMs: number): number {
  return firstTickAt + (tick - 1) * tickMs;
}

/** The shop as the first tick finds it: every order holds stock. Some are paid, and some are not due for a day. */
export function shopAtStart(firstTickAt: number, tickMs: number): ShopState {
  let count = 0;
  const order = (dueAt: number): Order => {
    count += 1;
    const product = products[count % products.length] as string;
    const lines = [{ product, quantity: 1 + (count % 3) }];
    return { orderId: `o-${String(count).padStart(3, "0")}`, lines, dueAt };
  };
  const orders = (amount: number, dueAt: number): Order[] =>
    Array.from({ length: amount }, (_, index) => order(dueAt - amount + index));

  const overdue = plan.flatMap((step, index) =>
    orders(step.orders, scheduledAt(firstTickAt, index + 1, tickMs)),
  );
  const paid = orders(4, firstTickAt);
  const notYetDue = orders(4, firstTickAt + dayMs);
  const open = [...overdue, ...notYetDue];
  return { open, paid, closed: [], stock: stockBeside([...open, ...paid]) };
}

/** What is left on the shelf when these orders hold their share. */
function stockBeside(orders: readonly Order[]): Record<string, number> {
  const stock = Object.fromEntries(products.map((product) => [product, shelf]));
  for (const { product, quantity } of orders.flatMap(({ lines }) => lines))
    stock[product] = (stock[product] ?? 0) - quantity;
  return stock;
}
