/** The handler without a lock, in a middy chain. */
import middy from "@middy/core";
import { type Order, handler as send } from "./bare.ts";

export const handler = middy<Order>().handler(async (event) => await send(event));
