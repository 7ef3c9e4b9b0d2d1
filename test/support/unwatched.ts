import { metricId, metricsOf } from "./alarms.ts";
import { type CloudFormationTemplate, resourcesOf, withStandIns } from "./cloudformation.ts";
import { withDefinitions } from "./definitions.ts";

/** What an app has to be told of a resource: each of these metrics by an alarm. */
interface Needed {
  readonly resource: string;
  readonly metrics: readonly string[];
}

/** The metrics that alarms of a template look at. */
function watchedMetrics(template: CloudFormationTemplate): Set<string> {
  return new Set(
    resourcesOf(template, "AWS::CloudWatch::Alarm").flatMap(([, { Properties }]) => metricsOf(Properties)),
  );
}

/**
 * Lists what no alarm watches: asynchronous functions, and others that are not said to answer their callers, state
 * machines that nobody waits for, and queues, all of which are dead-letter queues here.
 */
export function unwatched(template: CloudFormationTemplate, answering: readonly string[]): string[] {
  const watched = watchedMetrics(template);
  return [...functions(template, answering), ...stateMachines(template), ...queues(template)].flatMap(
    ({ resource, metrics }) =>
      metrics.filter((metric) => !watched.has(metric)).map((metric) => `${resource}: ${metric}`),
  );
}

function functions(template: CloudFormationTemplate, answering: readonly string[]): Needed[] {
  const properties = (type: string): Record<string, unknown>[] =>
    resourcesOf(template, type).map(([, { Properties }]) => Properties);
  const rules = properties("AWS::Events::Rule");
  const scheduled = [
    ...properties("AWS::Scheduler::Schedule"),
    ...rules.filter(({ ScheduleExpression }) => ScheduleExpression !== undefined),
  ];
  const triggered = rules.filter(({ EventPattern }) => EventPattern !== undefined);
  const kept = properties("AWS::Lambda::EventInvokeConfig").filter(
    ({ DestinationConfig }) => DestinationConfig,
  );
  const mappings = properties("AWS::Lambda::EventSourceMapping");
  return resourcesOf(template, "AWS::Lambda::Function").flatMap(([id]) => {
    const metrics = (...names: string[]): Needed => ({
      resource: id,
      metrics: names.map((name) => metricId("AWS/Lambda", name, { FunctionName: id })),
    });
    const isIn = (triggers: unknown[]): boolean => JSON.stringify(triggers).includes(`"${id}"`);
    // What the stream could not deliver goes to a queue, unless that fails, too; and what it delivers may be late.
    if (isIn(mappings)) return [metrics("DestinationDeliveryFailures", "IteratorAge")];
    if (isIn(kept)) return [metrics("Errors", "DestinationDeliveryFailures")];
    // Nothing is kept: the next run makes good what one has not done, as long as there are any.
    if (isIn(scheduled)) return [metrics("Invocations", "Errors")];
    const answers = !isIn(triggered) && answering.some((name) => id.startsWith(name));
    return answers ? [] : [metrics("Errors", "AsyncEventsDropped")];
  });
}

function stateMachines(template: CloudFormationTemplate): Needed[] {
  const Resources = withDefinitions(template.Resources);
  const all = resourcesOf({ Resources }, "AWS::StepFunctions::StateMachine");
  return all
    .filter(([id]) => !all.some(([, { Properties }]) => isAwaited(id, Properties.DefinitionString)))
    .map(([id]) => ({
      resource: id,
      metrics: ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"].map((name) =>
        metricId("AWS/States", name, { StateMachineArn: id }),
      ),
    }));
}

/** Whether a definition starts executions of a state machine and waits for them: then they fail with its own. */
function isAwaited(id: string, definition: unknown): boolean {
  const text = String(withStandIns(definition, (resource) => `<${resource}>`));
  const states = text.split(/(?="Type":"Task")/);
  return states.some((state) => state.includes("startExecution.sync") && state.includes(`<${id}>`));
}

function queues(template: CloudFormationTemplate): Needed[] {
  return resourcesOf(template, "AWS::SQS::Queue").map(([id]) => ({
    resource: id,
    metrics: [metricId("AWS/SQS", "ApproximateNumberOfMessagesVisible", { QueueName: `${id}.QueueName` })],
  }));
}
