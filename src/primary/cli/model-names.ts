import { anyOther, defaultModelName, type ModelAlias } from '../../shared/config/model-aliases.js';
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

/** Ids as the CLI itself has them. */
export type OwnModels = ReadonlySet<string>;

/**
 * Which model a name stands for, in this order: a model of its CLI, an alias, the name of the CLI and a model, the alias
 * of every other name. What is left is for the CLI to know. An alias is never looked up twice.
 */
export class ModelNames {
  readonly #aliases: ReadonlyMap<string, string>;
  readonly #spelling: Spelling<NamedAdapter>;
  /** Names that the operator gives to models, in their one spelling. */
  readonly #named: ReadonlySet<string>;

  constructor(aliases: readonly ModelAlias[], named: readonly string[], spelling: Spelling<NamedAdapter>) {
    this.#aliases = new Map(aliases.map(({ name, target }) => [name, target]));
    this.#spelling = spelling;
    const targets = aliases.map(({ target }) => target);
    this.#named = new Set(
      [...named.filter((name) => !this.#aliases.has(name)), ...targets].map((name) => this.given(name)),
    );
  }

  /** What a name stands for that the operator gives: there, `*` says nothing. */
  given(name: string): string {
    const model = this.isModel(name) ? name : (this.#aliases.get(name) ?? this.#spelling.withoutCli(name) ?? name);
    return this.canonical(model);
  }

  /** The one spelling of a name. */
  canonical(name: string): string {
    const { cli, model } = this.#spelling.split(name);
    return this.#spelling.publicName(cli, model) ?? name;
  }

  /** Whether the CLI has to be asked for its models before `of` can say what the name stands for. */
  needsList(name: string): boolean {
    const { cli } = this.#spelling.split(name);
    if (cli.adapter.models !== null) return false;
    const inner = this.#spelling.withoutCli(name);
    if (inner !== null) return this.#isReal(name) || !this.isModel(inner);
    if (this.#isReal(name)) return false;
    return this.#aliases.has(name) || (this.#aliases.has(anyOther) && !this.#spelling.namesCli(name));
  }

  /** What a name stands for that a request gives. `listed`: the models that its CLI lists. */
  of(name: string, listed: OwnModels = new Set()): string {
    const inner = this.#spelling.withoutCli(name);
    const isInner = inner !== null && listed.has(inner) && !listed.has(name); // though the name may have the form of a model
    if (!isInner && this.#isReal(name, listed)) return name;
    const known = this.#aliases.get(name) ?? inner;
    if (known !== null || this.#spelling.namesCli(name)) return known ?? name;
    return this.#aliases.get(anyOther) ?? name;
  }

  /** Whether it is known without asking that a CLI has a model of this name. */
  isModel(name: string): boolean {
    const { cli, model } = this.#spelling.split(name);
    const { models, modelForm } = cli.adapter;
    if (model === null) return true; // the name of one of several CLIs
    return models?.includes(model) === true || (modelForm !== undefined && model.search(modelForm) >= 0);
  }

  #isReal(name: string, listed: OwnModels = new Set()): boolean {
    const { model } = this.#spelling.split(name);
    if (name === defaultModelName || this.isModel(name) || this.#named.has(this.canonical(name))) return true;
    return model !== null && listed.has(model);
  }
}
