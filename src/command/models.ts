import { modelsBody } from '../shared/api/models.js';
import { addressFlags, type Command, clientOf, jsonFlag } from './command.js';
import { exitCodes } from './exit-codes.js';
import { renderModels } from './render/models.js';

export const models: Command = {
  name: 'models',
  takes: '',
  summary: 'list the models that may be asked',
  flags: { ...jsonFlag, ...addressFlags },
  maxWords: 0,
  run: async (given, surroundings) => {
    const { terminal } = surroundings;
    const body = await (await clientOf(given, surroundings)).get('/models', modelsBody);
    if (given.has('json')) await terminal.json(body);
    else for (const line of renderModels(body, terminal.paint)) await terminal.line(line);
    return exitCodes.ok;
  },
};
