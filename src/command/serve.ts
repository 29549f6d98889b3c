import type { Command } from './command.js';

/** Runs the service in this process, with its own signals, log and exit codes. */
export const serve: Command = {
  name: 'serve',
  takes: '',
  summary: 'run the service (the default command); MODEL_API_* variables configure it',
  flags: {},
  maxWords: 0,
  run: async () => {
    const { start } = await import('../primary/main.js');
    start();
    return null;
  },
};
