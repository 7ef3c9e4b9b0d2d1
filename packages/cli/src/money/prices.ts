// DynamoDB's on-demand prices for requests: the same numbers as in tools/bench/costs/prices.ts, which a test compares.

/** Prices in US dollars, and where and when they were read. */
export const prices = {
  writeUnit: 0.625 / 1_000_000,
  readUnit: 0.125 / 1_000_000,
  region: "us-east-1",
  date: "2026-11-22",
  source: "https://airbyte.com/data-engineering-resources/dynamodb-pricing",
} as const;

/** Months as AWS counts them, of 730 hours. */
export const secondsOfMonth: number = 730 * 3_600;
