// Types of resources that are not run here, and which of them an app cannot do without.

/**
 * Types whose resources do nothing that an app on one machine could miss: permissions, observation, encryption,
 * and names for things that are handled elsewhere.
 */
const withoutLocalBehaviour: ReadonlySet<string> = new Set([
  "AWS::CDK::Metadata",
  "AWS::CloudFormation::WaitConditionHandle",
  "AWS::CloudWatch::Alarm",
  "AWS::CloudWatch::CompositeAlarm",
  "AWS::CloudWatch::Dashboard",
  "AWS::Events::EventBus",
  "AWS::IAM::ManagedPolicy",
  "AWS::IAM::Policy",
  "AWS::IAM::Role",
  "AWS::KMS::Alias",
  "AWS::KMS::Key",
  "AWS::Lambda::Alias",
  "AWS::Lambda::EventInvokeConfig",
  "AWS::Lambda::Permission",
  "AWS::Lambda::Version",
  "AWS::Logs::LogGroup",
  "AWS::Logs::MetricFilter",
  "AWS::Logs::QueryDefinition",
  "AWS::Logs::ResourcePolicy",
  "AWS::SNS::Subscription",
  "AWS::SNS::Topic",
  "AWS::SNS::TopicPolicy",
  "AWS::SQS::QueuePolicy",
  "AWS::Scheduler::ScheduleGroup",
]);

/** Types that the app needs, and that do nothing here. */
const needed: ReadonlySet<string> = new Set([
  "AWS::CloudFormation::Stack",
  "AWS::Pipes::Pipe",
  "AWS::Serverless::Function",
  "AWS::Serverless::StateMachine",
  "AWS::StepFunctions::Activity",
]);

/** What to do about a type that is not run here. */
export function handlingOf(type: string): "skip" | "report" | "refuse" {
  if (withoutLocalBehaviour.has(type)) return "skip";
  return needed.has(type) ? "refuse" : "report";
}
