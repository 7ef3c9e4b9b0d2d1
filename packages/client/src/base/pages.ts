import type { ItemKey } from "./schema.ts";
import type { ScanPage } from "./store.ts";

/** Reads a walk page by page, from its beginning or from behind an item. */
export async function* pagesOf(
  read: (from: { readonly after?: ItemKey }) => Promise<ScanPage>,
  after?: ItemKey,
): AsyncGenerator<ScanPage, void, undefined> {
  for (let from = after && { after }; ; ) {
    const page = await read(from ?? {});
    yield page;
    if (page.next === undefined) return;
    from = { after: page.next };
  }
}
