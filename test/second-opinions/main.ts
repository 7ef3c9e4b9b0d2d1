/**
 * What tools by others say of this project, where this machine has Python. The first time it needs the network, for them.
 *
 *     npm run evidence -- second-opinions
 *     npm run evidence -- second-opinions moto
 *
 * Ends with 1 where a part finds something. A part that cannot run here is skipped, and says why.
 */
import { lintTemplates } from "./cfn-lint.ts";
import { checkOnMoto } from "./moto.ts";
import { type PythonTools, pythonTools } from "./python.ts";

const parts: Readonly<Record<string, (tools: PythonTools) => Promise<boolean>>> = {
  "cfn-lint": lintTemplates,
  moto: checkOnMoto,
};

const asked = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts);
for (const name of asked) {
  const part = parts[name];
  if (part === undefined)
    throw new Error(`there is no part ${name}; allowed: ${Object.keys(parts).join(", ")}`);
  const tools = await pythonTools(name);
  if (tools !== undefined && !(await part(tools))) process.exitCode = 1;
}
