import { hash } from "node:crypto";

/** A short name for a long text: two texts of one name are not to be expected. */
export function digest(text: string): string {
  return hash("sha1", text, "base64").slice(0, 16);
}
