import { expressionIn, statesLimits } from "./definition.ts";
import type { Place } from "./place.ts";

/** What the rules of a state need to know of the graph around it. */
export interface GraphRules {
  readonly language: unknown;
  readonly variables: ReadonlySet<string>;
  /** The names that Next can take. */
  readonly states: readonly string[];
  readonly nested: (graph: Record<string, unknown>, place: Place) => void;
}

type Fields = Record<string, unknown>;

const common = ["Type", "Comment", "QueryLanguage"];
const onward = ["Next", "End"];
const exits = ["Output", "Assign"];
const recovery = ["Retry", "Catch"];

const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  Pass: [...common, ...onward, ...exits],
  Task: [
    ...[...common, ...onward, ...exits, ...recovery],
    ...["Resource", "Arguments", "TimeoutSeconds", "HeartbeatSeconds"],
  ],
  Choice: [...common, ...exits, "Choices", "Default"],
  Wait: [...common, ...onward, ...exits, "Seconds", "Timestamp"],
  Succeed: [...common, "Output"],
  Fail: [...common, "Error", "Cause"],
  Parallel: [...common, ...onward, ...exits, ...recovery, "Branches", "Arguments"],
  Map: [
    ...[...common, ...onward, ...exits, ...recovery],
    ...["Items", "ItemSelector", "ItemProcessor", "MaxConcurrency"],
  ],
};

/** Without a path, these mean the same in both query languages. */
const plainFieldsOf: Readonly<Record<string, readonly string[]>> = {
  Pass: [...common, ...onward],
  Wait: [...common, ...onward, "Seconds", "Timestamp"],
  Succeed: common,
  Fail: [...common, "Error", "Cause"],
};

/** Checks one state. */
export function stateRules(state: Fields, place: Place, graph: GraphRules): void {
  const type = String(state.Type);
  const fields = fieldsOf[type];
  if (fields === undefined) {
    place
      .at("Type")
      .problem(`must be one of ${Object.keys(fieldsOf).join(", ")}, not ${JSON.stringify(type)}`);
    return;
  }
  const language = state.QueryLanguage ?? graph.language;
  if (language === "JSONata") place.known(state, fields);
  else if (language !== "JSONPath") place.at("QueryLanguage").problem("must be JSONata or JSONPath");
  else if (graph.language === "JSONata") {
    place.at("QueryLanguage").problem("a machine in JSONata has no states in JSONPath");
  } else if (plainFieldsOf[type] === undefined) {
    place.problem(`a ${type} state in JSONPath is not supported: give it "QueryLanguage": "JSONata"`);
    return;
  } else {
    place.known(state, plainFieldsOf[type]);
  }

  if (type !== "Choice" && type !== "Succeed" && type !== "Fail") checkOnward(state, place, graph);
  checkExit(state, place, graph, false);
  ownRules[type]?.(state, place, graph);
  if (state.Retry !== undefined) checkRetry(state.Retry, place.at("Retry"));
  if (state.Catch !== undefined) checkCatch(state.Catch, place.at("Catch"), graph);
}

const ownRules: Readonly<Record<string, (state: Fields, place: Place, graph: GraphRules) => void>> = {
  Task(state, place) {
    const resource = state.Resource;
    if (place.at("Resource").text(resource)) {
      if (expressionIn(resource) !== undefined) place.at("Resource").problem("cannot be an expression");
      if (/:activity:/.test(resource)) place.at("Resource").problem("activities are not supported");
    }
    place.at("Arguments").template(state.Arguments);
    const { TimeoutSeconds: timeout, HeartbeatSeconds: heartbeat } = state;
    place.at("TimeoutSeconds").wholeOrExpression(timeout, 1, statesLimits.seconds);
    place.at("HeartbeatSeconds").wholeOrExpression(heartbeat, 1, statesLimits.seconds);
    if (typeof timeout === "number" && typeof heartbeat === "number" && heartbeat >= timeout) {
      place.at("HeartbeatSeconds").problem("must be smaller than TimeoutSeconds");
    }
  },
  Choice(state, place, graph) {
    for (const [index, value] of place.at("Choices").list(state.Choices).entries()) {
      const at = place.at("Choices").at(index);
      const rule = at.object(value);
      if (rule === undefined) continue;
      at.known(rule, ["Condition", "Next", "Output", "Assign", "Comment"]);
      const condition = rule.Condition;
      if (expressionIn(condition) !== undefined) at.at("Condition").template(condition);
      else if (typeof condition !== "boolean") at.at("Condition").problem("must be a {% %} expression");
      checkTarget(rule.Next, at.at("Next"), graph);
      checkExit(rule, at, graph, false);
    }
    if (state.Default !== undefined) checkTarget(state.Default, place.at("Default"), graph);
  },
  Wait(state, place) {
    const { Seconds: seconds, Timestamp: timestamp } = state;
    if ((seconds === undefined) === (timestamp === undefined)) {
      place.problem("needs either Seconds or Timestamp");
    }
    place.at("Seconds").wholeOrExpression(seconds, 0, statesLimits.seconds);
    if (expressionIn(timestamp) !== undefined) place.at("Timestamp").template(timestamp);
    else if (timestamp !== undefined && !isTimestamp(timestamp)) {
      place.at("Timestamp").problem("must be a time such as 2026-11-21T10:00:00Z, or an expression");
    }
  },
  Fail(state, place) {
    for (const field of ["Error", "Cause"]) {
      if (state[field] !== undefined && place.at(field).text(state[field])) {
        place.at(field).template(state[field]);
      }
    }
  },
  Parallel(state, place, graph) {
    place.at("Arguments").template(state.Arguments);
    for (const [index, value] of place.at("Branches").list(state.Branches).entries()) {
      const at = place.at("Branches").at(index);
      const branch = at.object(value);
      if (branch === undefined) continue;
      at.known(branch, ["StartAt", "States", "Comment"]);
      graph.nested(branch, at);
    }
  },
  Map(state, place, graph) {
    if (state.Items !== undefined) {
      if (!Array.isArray(state.Items) && expressionIn(state.Items) === undefined) {
        place.at("Items").problem("must be a list or an expression that gives one");
      }
      place.at("Items").template(state.Items);
    }
    place.at("ItemSelector").template(state.ItemSelector);
    place.at("MaxConcurrency").wholeOrExpression(state.MaxConcurrency, 0, 2 ** 31);
    const at = place.at("ItemProcessor");
    const processor = at.object(state.ItemProcessor);
    if (processor === undefined) return;
    at.known(processor, ["ProcessorConfig", "StartAt", "States", "Comment"]);
    const config = processor.ProcessorConfig;
    const mode = (config as { Mode?: unknown } | undefined)?.Mode ?? "INLINE";
    if (mode !== "INLINE") at.at("ProcessorConfig").problem("only the mode INLINE is supported");
    graph.nested(processor, at);
  },
};

function checkOnward(state: Fields, place: Place, graph: GraphRules): void {
  const { Next: next, End: end } = state;
  if (end !== undefined && end !== true) place.at("End").problem("must be true where it is given");
  if ((next === undefined) === (end === undefined)) place.problem("needs either Next or End");
  if (next !== undefined) checkTarget(next, place.at("Next"), graph);
}

function checkTarget(next: unknown, place: Place, graph: GraphRules): void {
  if (typeof next !== "string" || !graph.states.includes(next)) {
    place.problem(`names no state here: ${JSON.stringify(next)}`);
  }
}

function checkExit(exit: Fields, place: Place, graph: GraphRules, inCatcher: boolean): void {
  place.at("Output").template(exit.Output, { inCatcher });
  if (exit.Assign === undefined) return;
  const assign = place.at("Assign").object(exit.Assign);
  for (const [name, value] of Object.entries(assign ?? {})) {
    const at = place.at("Assign").at(name);
    if (!/^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name) || name.length > statesLimits.nameLength) {
      at.problem("is not a variable name");
    }
    if (name === "states") at.problem("is reserved");
    if (graph.variables.has(name))
      at.problem("is a variable of an outer scope, which only that scope assigns");
    at.template(value, { inCatcher });
  }
}

function checkRetry(value: unknown, place: Place): void {
  const retriers = place.list(value);
  for (const [index, member] of retriers.entries()) {
    const at = place.at(index);
    const retrier = at.object(member);
    if (retrier === undefined) continue;
    at.known(retrier, [
      ...["ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxAttempts"],
      ...["MaxDelaySeconds", "JitterStrategy", "Comment"],
    ]);
    checkErrorEquals(retrier.ErrorEquals, at.at("ErrorEquals"), index === retriers.length - 1);
    at.at("IntervalSeconds").whole(retrier.IntervalSeconds, 1, statesLimits.seconds);
    at.at("MaxAttempts").whole(retrier.MaxAttempts, 0, statesLimits.seconds);
    at.at("MaxDelaySeconds").whole(retrier.MaxDelaySeconds, 1, 31_622_400);
    const { BackoffRate: rate, JitterStrategy: jitter } = retrier;
    if (rate !== undefined && !(typeof rate === "number" && rate >= 1)) {
      at.at("BackoffRate").problem("must be a number of at least 1");
    }
    if (jitter !== undefined && jitter !== "FULL" && jitter !== "NONE") {
      at.at("JitterStrategy").problem("must be FULL or NONE");
    }
  }
}

function checkCatch(value: unknown, place: Place, graph: GraphRules): void {
  const catchers = place.list(value);
  for (const [index, member] of catchers.entries()) {
    const at = place.at(index);
    const catcher = at.object(member);
    if (catcher === undefined) continue;
    at.known(catcher, ["ErrorEquals", "Next", "Output", "Assign", "Comment"]);
    checkErrorEquals(catcher.ErrorEquals, at.at("ErrorEquals"), index === catchers.length - 1);
    checkTarget(catcher.Next, at.at("Next"), graph);
    checkExit(catcher, at, graph, true);
  }
}

function checkErrorEquals(value: unknown, place: Place, last: boolean): void {
  const names = place.list(value);
  for (const [index, name] of names.entries()) place.at(index).text(name);
  if (names.includes("States.ALL") && !(last && names.length === 1)) {
    place.problem("States.ALL must stand alone and in the last entry");
  }
}

/** RFC 3339 with capital T and Z, as Step Functions wants it. */
export function isTimestamp(value: unknown): value is string {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
  return typeof value === "string" && form.test(value) && Number.isFinite(Date.parse(value));
}
