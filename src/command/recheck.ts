import { healthBody } from '../shared/api/health.js';
import { addressFlags, type Command, clientOf, jsonFlag } from './command.js';
import { exitCodes } from './exit-codes.js';
import { readinessLine } from './render/status.js';

export const recheck: Command = {
  name: 'recheck',
  takes: '',
  summary: 'have the service check its model CLI now; needs the API key',
  flags: { ...jsonFlag, ...addressFlags },
  maxWords: 0,
  run: async (given, surroundings) => {
    const { terminal, clock } = surroundings;
    const health = await (await clientOf(given, surroundings)).post('/health/recheck', healthBody);
    const { model_cli: found } = health.readiness;
    if (given.has('json')) await terminal.json(health);
    else await terminal.line(readinessLine(found, clock.now(), terminal.paint));
    return found.status === 'ready' ? exitCodes.ok : exitCodes.failed;
  },
};
