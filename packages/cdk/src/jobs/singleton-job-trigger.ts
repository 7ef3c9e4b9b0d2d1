import type { Rule } from "aws-cdk-lib/aws-events";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { aQueue, checkKind, having } from "../prop-kinds.ts";

/** Properties of a job that a trigger does not accept, each with the reason and what to do instead. */
interface RefusedProps {
  readonly [prop: string]: string;
}

const ofSchedules = "without a schedule: leave it out";
const forSchedules: RefusedProps = {
  end: ofSchedules,
  scheduleGroup: ofSchedules,
  scheduleName: ofSchedules,
  start: ofSchedules,
  timeWindow: ofSchedules,
};
const forRules: RefusedProps = {
  ...forSchedules,
  enabled: "for a rule, which has its own: set it on the rule",
  input: "for a rule, whose runs get the event as their input: leave it out",
};
const forQueues: RefusedProps = {
  ...forSchedules,
  input: "for a queue, whose runs get its messages: leave it out",
  maxEventAge: "for a queue, which has its own: set its retentionPeriod",
  retryAttempts: "for a queue, which has its own: set the maxReceiveCount of its deadLetterQueue",
};

/** The trigger of a job without a schedule: each event of a rule, or each message of a queue, starts a run. */
export class SingletonJobTrigger {
  /**
   * Runs the job for each event that a rule matches. The event of a run is `{ "job", "time", "executionId", "input" }`:
   * the time and the id of the event that the rule has matched, and that whole event as `input`.
   *
   * A run that finds the lock held waits for its turn (`overlap: "queue"`, the default, which needs a `wakeup`), unless
   * you say that its event may be lost (`"skip"`) or is more important (`"replace"`).
   *
   * ```ts
   * const uploaded = new Rule(this, "Uploaded", { eventPattern: { source: ["aws.s3"], detailType: ["Object Created"] } });
   * const trigger = SingletonJobTrigger.rule(uploaded);
   * ```
   */
  static rule(rule: Rule): SingletonJobTrigger {
    const aRule = having("a Rule of aws-events", "addTarget", "ruleArn");
    return new SingletonJobTrigger(forRules, checkKind("rule", rule, aRule), undefined);
  }

  /**
   * Runs the job for each message of a queue. The target has to be a function that acquires the lock itself, and its
   * event is the queue's: `{ "Records": [message] }`, with one message.
   *
   * A run that finds the lock held fails. Its message comes again after the queue's visibility timeout, and each time
   * counts for the queue's `maxReceiveCount`. In a FIFO queue with one message group, no run finds the lock held by
   * another run. With `overlap: "skip"` the message is deleted instead, and its work is not done.
   *
   * The queue needs a dead-letter queue. It is the job's, and has an alarm.
   *
   * ```ts
   * const failed = new Queue(this, "FailedOrders", { fifo: true });
   * const orders = new Queue(this, "Orders", { fifo: true, deadLetterQueue: { queue: failed, maxReceiveCount: 10 } });
   * const trigger = SingletonJobTrigger.queue(orders);
   * ```
   */
  static queue(queue: IQueue): SingletonJobTrigger {
    return new SingletonJobTrigger(forQueues, undefined, checkKind("queue", queue, aQueue));
  }

  readonly refusedProps: { readonly [prop: string]: string };
  /** The rule whose events are the runs. */
  readonly sourceRule: Rule | undefined;
  /** The queue whose messages are the runs. */
  readonly sourceQueue: IQueue | undefined;

  private constructor(refusedProps: RefusedProps, rule: Rule | undefined, queue: IQueue | undefined) {
    this.refusedProps = refusedProps;
    this.sourceRule = rule;
    this.sourceQueue = queue;
  }
}
