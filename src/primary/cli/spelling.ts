import { defaultModelName } from '../../shared/config/model-aliases.js';
import { modelNamePattern } from '../../shared/config/values.js';
import type { AtLeastOne, NamedAdapter } from './models.js';

/** A model as its CLI knows it. */
export interface OwnModel<C> {
  readonly cli: C;
  /** null: the CLI's default. */
  readonly model: string | null;
}

/** How requests spell the models of the CLIs. */
export interface Spelling<C> {
  split(name: string | null): OwnModel<C>;
  /** What requests call a CLI's model; null for the default of the only CLI. */
  publicName(cli: Pick<NamedAdapter, 'name'>, model: string | null): string | null;
  /** Where there is one CLI: the model that is named behind it; null where it is not named. */
  withoutCli(name: string): string | null;
  /** Whether one of several CLIs is named before the model, in the one spelling of this name. */
  namesCli(name: string): boolean;
}

/**
 * With one CLI, names are as it has them. With several, they are its name and the model's, as in `codex/gpt-5`; those of
 * the first one are known without its name too; a CLI's name alone is its default.
 */
export function spellingOf<C extends Pick<NamedAdapter, 'name'>>(clis: AtLeastOne<C>): Spelling<C> {
  return clis.length === 1 ? ofOne(clis[0]) : ofSeveral(clis);
}

function ofOne<C extends Pick<NamedAdapter, 'name'>>(cli: C): Spelling<C> {
  return {
    split: (model) => ({ cli, model }),
    publicName: (_, model) => model,
    withoutCli: (name) => {
      if (name === cli.name) return defaultModelName;
      const model = name.startsWith(`${cli.name}/`) ? name.slice(cli.name.length + 1) : '';
      return modelNamePattern.test(model) ? model : null;
    },
    namesCli: () => false,
  };
}

function ofSeveral<C extends Pick<NamedAdapter, 'name'>>(clis: AtLeastOne<C>): Spelling<C> {
  const split = (name: string | null) => {
    const [first = '', ...rest] = name?.split('/') ?? [];
    const cli = clis.find((each) => each.name === first);
    return cli === undefined ? { cli: clis[0], model: name } : { cli, model: rest.join('/') || null };
  };
  const publicName = (cli: Pick<NamedAdapter, 'name'>, model: string | null) =>
    model ? `${cli.name}/${model}` : cli.name;
  return {
    split,
    publicName,
    withoutCli: () => null,
    namesCli: (name) => {
      const { cli, model } = split(name);
      return publicName(cli, model) === name;
    },
  };
}
