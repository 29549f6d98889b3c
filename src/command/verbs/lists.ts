import { type ModelEntry, type ModelList, modelList } from '../../shared/api/models.js';
import { type VersionBody, versionBody } from '../../shared/api/version.js';
import { readProduct } from '../../shared/config/product.js';
import { escaped, type Paint } from '../../shared/text/paint.js';
import { alignColumns } from '../base/columns.js';
import { addressFlags, type Command, clientFor, jsonFlag, show } from '../base/command.js';

export const models: Command = {
  name: 'models',
  synopsis: '',
  summary: 'list the models that requests can name; * marks the default',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay models', 'prompt-relay models --url relay.example.org:5051'],
  run: async (args, context) => {
    const body = await (await clientFor(args, context)).get('/models', modelList);
    return show(args, context.terminal, body, (paint) => renderModels(body, paint));
  },
};

/** Command that prints the version of this program and of the service. Only a service named with --url must answer. */
export const version: Command = {
  name: 'version',
  synopsis: '',
  summary: 'show the version of this command and of the service, if the service answers',
  flags: { ...jsonFlag, ...addressFlags },
  maxPositionals: 0,
  examples: ['prompt-relay version', 'prompt-relay version --url relay.example.org --json'],
  run: async (args, context) => {
    const client = await clientFor(args, context);
    const isNamed = args.value('url') !== undefined;
    const found = isNamed
      ? await client.getState('/version', versionBody)
      : await client.getOptional('/version', versionBody);
    const { version, commit } = readProduct();
    const commandVersion = { version, commit, node: process.version };
    const service = found && { url: client.url, ...found };
    return show(args, context.terminal, { ...commandVersion, service }, () => [
      `prompt-relay ${version}`,
      ...(service === null ? [] : [escaped(`service ${service.version} at ${service.url}, ${clisIn(service)}`)]),
    ]);
  },
};

function clisIn({ model_cli, model_clis }: VersionBody): string {
  return (model_clis ?? [model_cli])
    .map(({ adapter, version }) => `${adapter} ${version ?? 'of unknown version'}`)
    .join(', ');
}

/** Formats a list of models. The ID is in the first column, for use with `cut`. A star marks the default model. */
function renderModels({ models: list }: ModelList, paint: Paint): string[] {
  const rows = list.map(({ id, name, default: isDefault, description, alias_of: target, capabilities }) => [
    id,
    isDefault ? '*' : '',
    abilitiesOf(capabilities),
    target === undefined
      ? [name === id ? '' : name, description ?? ''].filter((text) => text !== '').join(': ')
      : `stands for ${target}`,
  ]);
  return alignColumns(rows.map((row) => row.map(escaped))).map((line, index) =>
    list[index]?.default ? paint.bold(line) : line,
  );
}

/** Lists the features beyond text that requests for a model can use. */
function abilitiesOf(capabilities: ModelEntry['capabilities']): string {
  const { tools, images = false, effort = false } = capabilities ?? {};
  const all = [tools !== undefined && 'tools', images && 'images', effort && 'effort'];
  return all.filter((ability) => ability !== false).join(', ');
}
