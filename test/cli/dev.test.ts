import { describe, expect, it } from "vitest";
import {
  loadEnginePackage,
  localVariables,
  shellLines,
  shellOf,
} from "../../packages/cli/src/commands/dev.ts";

const place = { tableName: "leases", endpoint: "http://127.0.0.1:8000" };

describe("leasehold dev", () => {
  it("prints one line for sh, and for fish and PowerShell a line for each variable", () => {
    const variables = localVariables(place, {});
    expect(shellLines(variables, "sh")).toEqual([
      "export LEASEHOLD_TABLE_NAME=leases AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 AWS_REGION=us-east-1 " +
        "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local",
    ]);
    expect(shellLines(variables, "fish")).toContain(
      "set -gx AWS_ENDPOINT_URL_DYNAMODB http://127.0.0.1:8000",
    );
    expect(shellLines(variables, "powershell")).toContain('$env:LEASEHOLD_TABLE_NAME = "leases"');
  });

  it("takes away what would lead the SDK elsewhere, where it is set", () => {
    const variables = localVariables(place, { AWS_PROFILE: "work", AWS_SESSION_TOKEN: "t" });
    expect(shellLines(variables, "sh")[0]).toBe("unset AWS_PROFILE AWS_SESSION_TOKEN");
    expect(shellLines(variables, "fish")[0]).toBe("set -e AWS_PROFILE");
    expect(shellLines(variables, "powershell")[0]).toBe("Remove-Item Env:AWS_PROFILE");
  });

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
