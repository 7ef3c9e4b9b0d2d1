import { Duration } from "aws-cdk-lib";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { acceptFinding } from "./accepted-findings.ts";

/** Creates a queue for undelivered messages: encrypted, closed to plain HTTP, with a retention of 14 days. */
export function deadLetterQueueOf(scope: Construct, id: string = "DeadLetters"): Queue {
  const queue = new Queue(scope, id, {
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.days(14),
  });
  acceptFinding(
    queue,
    "SQS3",
    "It is a dead-letter queue itself, of an event source or a schedule: the rule sees those of queues and topics only.",
  );
  return queue;
}
