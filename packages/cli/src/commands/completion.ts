import { command } from "../command.ts";
import { completionScript, completionShells } from "../completion/scripts.ts";
import { completionWords } from "../completion/words.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";

export default command({
  usage: "completion bash|zsh|fish",
  details: `
Prints a script that completes commands and flags in a shell.

  echo 'source <(leasehold completion bash)' >> ~/.bashrc
  echo 'source <(leasehold completion zsh)' >> ~/.zshrc        # behind compinit
  leasehold completion fish > ~/.config/fish/completions/leasehold.fish`,
  writes: false,
  operands: [1, 1],
  flags: {},
  async run({ operands: [given = ""], terminal }) {
    const shell = completionShells.find((one) => one === given);
    if (shell === undefined) {
      throw new UsageError(`"${shown(given)}" has no completion; allowed: ${completionShells.join(", ")}`);
    }
    const script = completionScript(shell, await completionWords());
    for (const line of script.trimEnd().split("\n")) terminal.print(line);
    return exitCodes.done;
  },
});
