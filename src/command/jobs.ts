import { statusBody } from '../shared/api/status.js';
import { addressFlags, type Command, clientFor, jsonFlag } from './command.js';
import { exitCodes } from './errors.js';
import { renderJobs } from './render/jobs.js';

const jobsBody = statusBody.pick({ slots: true, queue: true });

export const jobs: Command = {
  name: 'jobs',
  synopsis: '',
  summary: 'show the jobs that run now, and the queue',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  notes: ['Where there are API keys, only one with the scope admin shows the names of clients.'],
  examples: ['prompt-relay jobs'],
  run: async (args, context) => {
    const { terminal, clock } = context;
    const { slots, queue } = await (await clientFor(args, context)).getState('/status', jobsBody);
    if (args.has('json')) await terminal.writeJson({ slots, queue });
    else await terminal.writeLines(renderJobs({ slots, queue }, clock.now(), terminal.paint));
    return exitCodes.ok;
  },
};
