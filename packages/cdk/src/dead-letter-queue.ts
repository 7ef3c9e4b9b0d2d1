import { Duration } from "aws-cdk-lib";
import { type IGrantable, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IScheduleTarget } from "aws-cdk-lib/aws-scheduler";
import { type IQueue, Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
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

/** Returns a schedule's target whose role may also use the key of its dead-letter queue: the library permits the queue alone. */
export function withKeyOf(queue: IQueue, target: IScheduleTarget): IScheduleTarget {
  return {
    bind: (schedule) => {
      const config = target.bind(schedule);
      permitKey(queue, config.role);
      return config;
    },
  };
}

/** Permits EventBridge to use the key of a rule's dead-letter queue. */
export function permitKeyToRules(queue: IQueue): void {
  permitKey(queue, new ServicePrincipal("events.amazonaws.com"));
}

function permitKey({ encryptionMasterKey }: IQueue, grantee: IGrantable): void {
  encryptionMasterKey?.grant(grantee, "kms:Decrypt", "kms:GenerateDataKey");
}
