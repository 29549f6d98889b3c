import type { ModelEntry, ModelList } from '../../shared/api/models.js';
import { anyOther, defaultModelName, type ModelAlias } from '../../shared/config/model-aliases.js';

/** The list with the names behind it that stand for models of it; those that are models themselves are left out. */
export function withAliases(
  { models }: ModelList,
  aliases: readonly ModelAlias[],
  spelled: (name: string) => string,
): ModelList {
  const isListed = ({ name }: ModelAlias) => models.some(({ id }) => id === spelled(name));
  const named = aliases.filter((alias) => alias.name !== anyOther && !isListed(alias));
  const all = [...models, ...named.map(({ name, target }) => aliasOf(name, entryFor(target, models, spelled)))];
  return { count: all.length, models: all };
}

/** The model in the list that a request with this name is run with, `target` being what the name stands for. */
export function findModel(
  name: string,
  { models }: ModelList,
  target: string,
  spelled: (name: string) => string,
): ModelEntry | null {
  const listed = models.find(({ id }) => id === name);
  if (listed !== undefined) return listed;
  const { id } = entryFor(target, models, spelled);
  const model = models.find((each) => each.id === id);
  return model === undefined ? null : aliasOf(name, model);
}

function entryFor(target: string, models: readonly ModelEntry[], spelled: (name: string) => string) {
  const usual = target === defaultModelName ? models.find((model) => model.default) : undefined;
  const id = spelled(target);
  return usual ?? models.find((model) => model.id === id) ?? { id };
}

function aliasOf(name: string, { id, capabilities }: Pick<ModelEntry, 'id' | 'capabilities'>): ModelEntry {
  return { id: name, name, default: false, ...(capabilities && { capabilities }), alias_of: id };
}
