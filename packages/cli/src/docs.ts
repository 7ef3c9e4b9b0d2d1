/** The address of a page of the documentation, or of a section of it: `RUNBOOK.md#ttl`. */
export function docsAddress(page: string): string {
  return `https://github.com/leasehold/leasehold/blob/main/docs/${page}`;
}
