import type { Command } from './command.js';
import { CommandError, exitCodes } from './errors.js';
import { bashCompletion } from './render/completion-bash.js';
import { fishCompletion } from './render/completion-fish.js';
import { zshCompletion } from './render/completion-zsh.js';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export const completion: Command = {
  name: 'completion',
  synopsis: 'bash | zsh | fish',
  summary: 'print the script that completes this command in a shell',
  flags: {},
  maxPositionals: 1,
  words: Object.keys(scripts),
  examples: [
    'source <(prompt-relay completion bash)',
    'prompt-relay completion zsh > ~/.zfunc/_prompt-relay',
    'prompt-relay completion fish > ~/.config/fish/completions/prompt-relay.fish',
  ],
  run: async ({ positionals: [shell = ''] }, { terminal, commands }) => {
    const script = Object.entries(scripts).find(([name]) => name === shell)?.[1];
    if (script === undefined) throw new CommandError(exitCodes.usage, 'completion: say bash, zsh or fish');
    await terminal.writeLines(script(commands));
    return exitCodes.ok;
  },
};
