import { anyOther, defaultModelName, type ModelAlias } from '../../shared/config/model-aliases.js';
import { modelNamePattern } from '../../shared/config/values.js';
import type { ModelRouter } from './model-router.js';
import type { NamedAdapter } from './models.js';

/** Ids as the CLI itself has them. */
export type OwnModels = ReadonlySet<string>;

/**
 * Which model a name stands for, in this order: a model of its CLI, an alias, the name of the CLI and a model, the alias
 * of every other name. What is left is for the CLI to know. An alias is never looked up twice.
 */
export class ModelNames {
  readonly #aliases: ReadonlyMap<string, string>;
  readonly #clis: readonly NamedAdapter[];
  readonly #router: Pick<ModelRouter, 'isPlain' | 'split' | 'canonical'>;
  /** Names that the operator gives to models, in their one spelling. */
  readonly #named: ReadonlySet<string>;

  constructor(
    aliases: readonly ModelAlias[],
    named: readonly string[],
    clis: readonly NamedAdapter[],
    router: Pick<ModelRouter, 'isPlain' | 'split' | 'canonical'>,
  ) {
    this.#aliases = new Map(aliases.map(({ name, target }) => [name, target]));
    this.#clis = clis;
    this.#router = router;
    const targets = aliases.map(({ target }) => target);
    this.#named = new Set(
      [...named.filter((name) => !this.#aliases.has(name)), ...targets].map((name) => this.given(name)),
    );
  }

  /** What a name stands for that the operator gives: there, `*` says nothing. */
  given(name: string): string {
    const model = this.isModel(name) ? name : (this.#aliases.get(name) ?? this.#withoutCli(name) ?? name);
    return this.#router.canonical(model);
  }

  /** Whether the CLI has to be asked for its models before `of` can say what the name stands for. */
  needsList(name: string): boolean {
    if (this.#adapterOf(name)?.models !== null) return false;
    const inner = this.#withoutCli(name);
    if (inner !== null) return this.#isReal(name) || !this.isModel(inner);
    if (this.#isReal(name)) return false;
    return this.#aliases.has(name) || (this.#aliases.has(anyOther) && !this.#namesCli(name));
  }

  /** What a name stands for that a request gives. `listed`: the models that its CLI lists. */
  of(name: string, listed: OwnModels = new Set()): string {
    const inner = this.#withoutCli(name);
    const isInner = inner !== null && listed.has(inner) && !listed.has(name); // though the name may have the form of a model
    if (!isInner && this.#isReal(name, listed)) return name;
    const known = this.#aliases.get(name) ?? inner;
    if (known !== null || this.#namesCli(name)) return known ?? name;
    return this.#aliases.get(anyOther) ?? name;
  }

  /** Whether it is known without asking that a CLI has a model of this name. */
  isModel(name: string): boolean {
    const { model } = this.#router.split(name);
    const { models = null, modelForm } = this.#adapterOf(name) ?? {};
    if (model === null) return true; // the name of one of several CLIs
    return models?.includes(model) === true || (modelForm !== undefined && model.search(modelForm) >= 0);
  }

  #isReal(name: string, listed: OwnModels = new Set()): boolean {
    const { model } = this.#router.split(name);
    if (name === defaultModelName || this.isModel(name) || this.#named.has(this.#router.canonical(name))) return true;
    return model !== null && listed.has(model);
  }

  #adapterOf(name: string) {
    return this.#clis[this.#router.split(name).index]?.adapter;
  }

  /** Whether one of several CLIs is named before the model. */
  #namesCli(name: string): boolean {
    return !this.#router.isPlain && this.#router.canonical(name) === name;
  }

  /** Where there is one CLI: the model that is named behind it; null where it is not named. */
  #withoutCli(name: string): string | null {
    const cli = this.#clis[0]?.name ?? '';
    if (!this.#router.isPlain) return null;
    if (name === cli) return defaultModelName;
    const model = name.startsWith(`${cli}/`) ? name.slice(cli.length + 1) : '';
    return modelNamePattern.test(model) ? model : null;
  }
}
