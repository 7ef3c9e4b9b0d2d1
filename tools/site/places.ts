// Where the site's parts are.
import { fileURLToPath } from "node:url";

/** The repository's folder. */
export const repository: string = fileURLToPath(new URL("../..", import.meta.url));

/** The pages as people write them. */
export const docs: string = fileURLToPath(new URL("../../docs/", import.meta.url));

/** The pages as the site is built of them: a copy of the docs, with the API reference beside them. */
export const pages: string = fileURLToPath(new URL("pages/", import.meta.url));

/** What is not in the docs is on GitHub. */
export const sourceUrl = "https://github.com/leasehold/leasehold";
