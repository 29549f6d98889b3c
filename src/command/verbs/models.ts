import { type ModelList, modelList } from '../../shared/api/models.js';
import { alignColumns } from '../../shared/text/format.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { addressFlags, type Command, clientFor, jsonFlag, show } from '../base/command.js';

export const models: Command = {
  name: 'models',
  synopsis: '',
  summary: 'list the models that requests can name; a star marks the default',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay models', 'prompt-relay models --url relay.example.org:5051'],
  run: async (args, context) => {
    const body = await (await clientFor(args, context)).get('/models', modelList);
    return show(args, context.terminal, body, (paint) => renderModels(body, paint));
  },
};

/** The ID is in the first column, for use with `cut`. A star marks the default model. */
function renderModels({ models: list }: ModelList, paint: Paint): string[] {
  const rows = list.map(({ id, name, default: isDefault, description, alias_of: target }) => [
    id,
    isDefault ? '*' : '',
    target === undefined
      ? [name === id ? '' : name, description ?? ''].filter((text) => text !== '').join(': ')
      : `stands for ${target}`,
  ]);
  return alignColumns(rows.map((row) => row.map(escaped))).map((line, index) =>
    list[index]?.default ? paint.bold(line) : line,
  );
}
