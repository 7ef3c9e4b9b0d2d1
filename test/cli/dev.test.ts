import { describe, expect, it } from "vitest";
import {
  loadEnginePackage,
  localVariables,
  shellLines,
  shellOf,
} from "../../packages/cli/src/commands/dev.ts";

const place = { tableName: "leases", endpoint: "http://127.0.0.1:8000" };

describe("leasehold dev", () => {
  const set = "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=local";
  it.each([
    ["sh", [`export LEASEHOLD_TABLE_NAME=leases ${set} AWS_SECRET_ACCESS_KEY=local`], "unset AWS_PROFILE T"],
    ["fish", ["set -gx LEASEHOLD_TABLE_NAME leases", "set -gx AWS_REGION us-east-1"], "set -e AWS_PROFILE"],
    [
      "powershell",
      ['$env:LEASEHOLD_TABLE_NAME = "leases"', '$env:AWS_REGION = "us-east-1"'],
      "Remove-Item Env:AWS_PROFILE",
    ],
  ] as const)(
    "prints for %s what leads the SDK there, and takes away what would lead it elsewhere",
    (shell, lines, first) => {
      const variables = localVariables(place, {});
      expect(shellLines[shell](variables)).toEqual(expect.arrayContaining([...lines]));
      expect(shellLines[shell]({ ...variables, unset: ["AWS_PROFILE", "T"] })[0]).toBe(first);
      expect(localVariables(place, { AWS_PROFILE: "work", HOME: "x" }).unset).toEqual(["AWS_PROFILE"]);
    },
  );

  it.each([
    [{ SHELL: "/usr/bin/fish" }, "darwin", "fish"],
    [{ SHELL: "/bin/zsh" }, "darwin", "sh"],
    [{}, "win32", "powershell"],
    [{ SHELL: "/usr/bin/bash" }, "win32", "sh"],
    [{}, "linux", "sh"],
  ] as const)("knows the shell of %j on %s", (env, platform, shell) => {
    expect(shellOf(env, platform)).toBe(shell);
  });

  it("says what to install where the engine's package is missing", async () => {
    const missing = Object.assign(new Error("Cannot find package '@leasehold/engine'"), {
      code: "ERR_MODULE_NOT_FOUND",
    });
    const fail = () => {
      throw missing;
    };
    await expect(loadEnginePackage([fail, fail])).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining("npm install --save-dev @leasehold/engine"),
    });
    await expect(loadEnginePackage([fail, () => "found"])).resolves.toBe("found");
  });

  it("throws what is wrong with a package that is there", async () => {
    const broken = new SyntaxError("unexpected token");
    const fail = () => {
      throw broken;
    };
    await expect(loadEnginePackage([fail])).rejects.toBe(broken);
  });
});
