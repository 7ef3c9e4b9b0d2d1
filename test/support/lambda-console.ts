/**
 * Makes `console` what it is in a Lambda function, for a process that has no runtime client of AWS's: import it first.
 *
 * It stands for the logging of aws-lambda-ric 4.0.2 without a telemetry socket. Under the text format a line gets the
 * time, the request id and the level before it; under JSON it becomes the message of an object with these. What is below
 * the level is dropped. Standard output itself is left alone.
 */
import { format } from "node:util";

const levels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
const isJson = process.env.AWS_LAMBDA_LOG_FORMAT?.toUpperCase() === "JSON";
const least = levels.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL?.toUpperCase() ?? "TRACE");

function writer(level: string): (message?: unknown, ...more: unknown[]) => void {
  if (levels.indexOf(level) < least) return () => undefined;
  return (message, ...more) => {
    const timestamp = new Date().toISOString();
    const requestId = "request";
    const line = isJson
      ? JSON.stringify({
          timestamp,
          level,
          requestId,
          message: more.length === 0 ? message : format(message, ...more),
        })
      : [timestamp, requestId, level, format(message, ...more)].join("\t");
    process.stdout.write(`${line.replaceAll("\n", "\r")}\n`);
  };
}

const info = writer("INFO");
Object.assign(console, {
  trace: writer("TRACE"),
  debug: writer("DEBUG"),
  info,
  log: info,
  warn: writer("WARN"),
  error: writer("ERROR"),
});
