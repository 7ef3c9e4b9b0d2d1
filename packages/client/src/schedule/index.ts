export { InvalidScheduleError } from "./errors.ts";
export { parseScheduleExpression, type ScheduleExpressionOptions, type ScheduleTimes } from "./expression.ts";
