// Turns an assembly into plain data. A resource whose absence would change what runs is an error.

import { AssemblyError, UnsupportedResourceError } from "./errors.ts";
import { functionSpec, type InvokeConfig, invokeConfigOf } from "./function.ts";
import type { StackEnv } from "./identity.ts";
import { Properties } from "./properties.ts";
import { handlingOf } from "./resource-types.ts";
import { ruleSpec } from "./rule.ts";
import { scheduleSpec } from "./schedule.ts";
import { StackScope } from "./stack-scope.ts";
import { stateMachineSpec } from "./state-machine.ts";
import { streamMappingSpec } from "./stream-mapping.ts";
import { tableSpec } from "./table.ts";
import type {
  AppSpec,
  Assembly,
  FunctionSpec,
  Json,
  QueueSpec,
  RuleSpec,
  ScheduleSpec,
  StateMachineSpec,
  StreamMappingSpec,
  TableSpec,
} from "./types.ts";

/** How an assembly is placed on this machine. */
export interface ResolveOptions {
  /** @default "us-east-1" */
  readonly region?: string;
  /** @default "123456789012" */
  readonly accountId?: string;
  /** Added to the name of every table. @default "" */
  readonly tableSuffix?: string;
  /** What the URLs of queues start with. @default "https://sqs.us-east-1.amazonaws.com" */
  readonly queueBaseUrl?: string;
}

/** A resource in its scope. */
interface Located {
  readonly scope: StackScope;
  readonly logicalId: string;
  readonly type: string;
}

/**
 * Resolves an assembly into plain data: what to create, to run, to poll and to fire.
 *
 * Physical names are those of the template, or else `<stack>-<logical id>`, so they are the same in every run. ARNs
 * have AWS's form. Resources without behaviour on one machine, such as roles and alarms, are left out; those of an
 * unknown type are named in `ignored`.
 *
 * Throws UnsupportedIntrinsicError and UnsupportedResourceError for what would run differently from what the template
 * says.
 */
export function resolveApp(assembly: Assembly, options: ResolveOptions = {}): AppSpec {
  const { region = "us-east-1", accountId = "123456789012", tableSuffix = "" } = options;
  const queueBaseUrl = options.queueBaseUrl ?? `https://sqs.${region}.amazonaws.com`;
  const env: StackEnv = { partition: "aws", region, accountId, queueBaseUrl };
  const scopes = assembly.stacks.map((stack) => new StackScope(stack, env, tableSuffix));
  return new Resolution(scopes).app();
}

class Resolution {
  readonly #scopes: readonly StackScope[];
  readonly #located: readonly Located[];

  constructor(scopes: readonly StackScope[]) {
    this.#scopes = scopes;
    this.#located = scopes.flatMap((scope) =>
      scope.resources().map(([logicalId, { Type }]) => ({ scope, logicalId, type: Type })),
    );
  }

  app(): AppSpec {
    const tables = this.#tables();
    const { outputs, unresolved } = this.#outputs();
    return {
      tables,
      functions: this.#functions(),
      streamMappings: this.#streamMappings(tables),
      schedules: this.#schedules(),
      rules: this.#rules(),
      stateMachines: this.#stateMachines(),
      queues: this.#queues(),
      outputs,
      ignored: [...this.#ignored(), ...unresolved],
    };
  }

  #tables(): TableSpec[] {
    return this.#ofType("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable").map((found) => {
      const { scope, logicalId } = found;
      const streamArn = String(scope.attribute(logicalId, "StreamArn", logicalId));
      return tableSpec(scope.nameOf(logicalId), propertiesOf(found), streamArn);
    });
  }

  #functions(): FunctionSpec[] {
    const invokeConfigs = new Map<string, InvokeConfig>();
    for (const found of this.#ofType("AWS::Lambda::EventInvokeConfig")) {
      const properties = propertiesOf(found);
      invokeConfigs.set(functionNameOf(properties.text("FunctionName")), invokeConfigOf(properties));
    }
    return this.#ofType("AWS::Lambda::Function").map((found) => {
      const name = found.scope.nameOf(found.logicalId);
      return functionSpec(name, propertiesOf(found), found.scope.stack, invokeConfigs.get(name.name));
    });
  }

  #streamMappings(tables: readonly TableSpec[]): StreamMappingSpec[] {
    return this.#ofType("AWS::Lambda::EventSourceMapping").map((found) => {
      const mapping = streamMappingSpec(nameOf(found), propertiesOf(found), tables);
      return { ...mapping, functionName: functionNameOf(mapping.functionName) };
    });
  }

  #schedules(): ScheduleSpec[] {
    return this.#ofType("AWS::Scheduler::Schedule").map((found) =>
      scheduleSpec(nameOf(found), propertiesOf(found)),
    );
  }

  #rules(): RuleSpec[] {
    return this.#ofType("AWS::Events::Rule").flatMap((found) => {
      return ruleSpec(nameOf(found), propertiesOf(found)) ?? [];
    });
  }

  #stateMachines(): StateMachineSpec[] {
    return this.#ofType("AWS::StepFunctions::StateMachine").map((found) =>
      stateMachineSpec(nameOf(found), propertiesOf(found), found.scope.stack),
    );
  }

  #queues(): QueueSpec[] {
    return this.#ofType("AWS::SQS::Queue").map((found) => ({
      ...nameOf(found),
      url: found.scope.identity(found.logicalId, found.logicalId).ref,
    }));
  }

  /** An output may refer to a resource that is ignored: the app runs without it. */
  #outputs(): { outputs: Record<string, Json>; unresolved: string[] } {
    const outputs: Record<string, Json> = {};
    const unresolved: string[] = [];
    for (const scope of this.#scopes) {
      for (const name of Object.keys(scope.stack.template.Outputs ?? {})) {
        const key = `${scope.stack.name}.${name}`;
        try {
          const value = scope.output(name);
          if (value !== undefined) outputs[key] = value;
        } catch (error) {
          if (!(error instanceof AssemblyError)) throw error;
          unresolved.push(`${key} (output)`);
        }
      }
    }
    return { outputs, unresolved };
  }

  #ignored(): string[] {
    const ignored: string[] = [];
    const rules = new Set(this.#rules().map(({ stack, logicalId }) => `${stack}/${logicalId}`));
    for (const { scope, logicalId, type } of this.#located) {
      if (runHere.has(type) && scope.isConditional(logicalId))
        throw new UnsupportedResourceError(scope.label(logicalId), "conditions are not evaluated here");
      if (runHere.has(type) || rules.has(`${scope.stack.name}/${logicalId}`)) continue;
      const label = scope.label(logicalId);
      const handling = handlingOf(type);
      if (handling === "refuse") throw new UnsupportedResourceError(label, `${type} cannot be run here`);
      if (handling === "report") ignored.push(`${label} (${type})`);
    }
    return ignored;
  }

  #ofType(...types: readonly string[]): Located[] {
    return this.#located.filter(({ type }) => types.includes(type));
  }
}

const runHere: ReadonlySet<string> = new Set([
  "AWS::DynamoDB::Table",
  "AWS::DynamoDB::GlobalTable",
  "AWS::Lambda::Function",
  "AWS::Lambda::EventSourceMapping",
  "AWS::Scheduler::Schedule",
  "AWS::StepFunctions::StateMachine",
  "AWS::SQS::Queue",
]);

/** The function's name from whatever names it: the name, an ARN, or an ARN of a version or an alias. */
export function functionNameOf(nameOrArn: string): string {
  const parts = nameOrArn.split(":");
  const at = parts.indexOf("function");
  return (at === -1 ? parts[0] : parts[at + 1]) ?? nameOrArn;
}

function propertiesOf({ scope, logicalId }: Located): Properties {
  return new Properties(scope.label(logicalId), scope.properties(logicalId));
}

function nameOf({ scope, logicalId }: Located): ReturnType<StackScope["nameOf"]> {
  return scope.nameOf(logicalId);
}
