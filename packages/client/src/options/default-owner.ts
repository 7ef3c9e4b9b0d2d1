import { hostname } from "node:os";

/** Names this process as its logs do, and this client within it. */
export function defaultOwner(unique: string): string {
  const { AWS_LAMBDA_FUNCTION_NAME: name, AWS_LAMBDA_LOG_STREAM_NAME: stream } = process.env;
  const place =
    name !== undefined && stream !== undefined ? `${name}/${stream}` : `${hostname()}:${process.pid}`;
  return `${place}:${unique.slice(0, 8)}`;
}
