import { describe, expect, test } from "vitest";
import { demonstrationPace, demonstrationPaceAt, deployedPace } from "../../infra/pace.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { definitionsIn } from "../support/definitions.ts";

describe("the demonstration's pace", () => {
  const deployed = leaseholdTemplate();
  const demonstration = leaseholdTemplate(demonstrationPace);

  test("differs from the deployed one in durations only: the same resources under the same logical ids", () => {
    expect(paceless(demonstration)).toEqual(paceless(deployed));
  });

  test("does differ, and is never slower", () => {
    expect(demonstration.json).not.toEqual(deployed.json);
    for (const [name, duration] of Object.entries(demonstrationPace)) {
      const earnest = deployedPace[name as keyof typeof deployedPace];
      expect(duration.toMilliseconds(), name).toBeLessThanOrEqual(earnest.toMilliseconds());
    }
  });

  test.for([1.5, 2.5, 3.5, 20])("can be stretched %s times, and stays the same app", (stretch) => {
    const pace = demonstrationPaceAt(stretch);
    expect(pace.ticketSilence.toMilliseconds()).toBe(5_000 * stretch);
    expect(pace.workflowLease.toSeconds()).toBe(Math.ceil(3 * stretch));
    expect(paceless(leaseholdTemplate(pace))).toEqual(paceless(deployed));
  });

  /** A template with a mark in the place of every duration; definitions as what they define. */
  function paceless(app: typeof demonstration): unknown {
    const { Resources, ...rest } = structuredClone(app.json);
    for (const [id, definition] of Object.entries(definitionsIn(app.template))) {
      const inside = { DefinitionString: definition, DefinitionS3Location: undefined };
      Object.assign(Resources[id]?.Properties ?? {}, inside);
    }
    const durations =
      /^(Seconds|TimeoutSeconds|[A-Z]\w+_MS|MaximumEventAgeInSeconds|leaseDurationMs)$|^:(expiresAt|leaseDurationMs|ttl)$/;
    return JSON.parse(
      JSON.stringify({ Resources, ...rest }, (name, value) => (durations.test(name) ? "a duration" : value)),
    );
  }
});
