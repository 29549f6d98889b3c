import type { PrimaryCore } from '../../primary/features/feature.js';
import { defaultModelName } from '../../shared/config/values.js';
import type { UsagePart } from '../usage/primary.js';
import { budgetsIn } from './options.js';

type Names = Pick<PrimaryCore['router']['names'], 'resolveConfigured' | 'isModel' | 'split' | 'choice'>;

/** Models that warnings name. */
const maxWarnings = 10;

type LimitedLines = Pick<PrimaryCore['clients'], 'operatorKeys' | 'personLines' | 'groupLines'>;

/** Tells whether names stand for the same model: the same public name, or names for which the same model has answered. */
export class BudgetModels {
  readonly #names: Names;
  readonly #usage: Pick<UsagePart, 'answeringModel'>;

  constructor(names: Names, usage: Pick<UsagePart, 'answeringModel'>) {
    this.#names = names;
    this.#usage = usage;
  }

  /** Returns the public name of a model that the keys file names, perhaps by an alias. */
  resolve(model: string): string {
    return this.#names.resolveConfigured(model);
  }

  /** Whether a budget for a model counts the jobs of one of these models. An empty name is that of the default model. */
  isAmong(model: string, names: readonly string[]): boolean {
    const budgetName = this.resolve(model);
    const limited = this.#namesOf(budgetName);
    const isLimited = (name: string) => limited.includes(name) || this.#isShortFor(budgetName, name);
    return names.some((name) => this.#namesOf(name).some(isLimited));
  }

  /** Whether the first name is a short one for models such as this, which may not have answered for it yet. */
  #isShortFor(short: string, name: string): boolean {
    const [limited, named] = [this.#names.split(short), this.#names.split(name)];
    if (limited.model === null || named.cli !== limited.cli) return false;
    const words = named.model?.toLowerCase().split(/[^a-z0-9]+/) ?? [];
    return limited.cli.adapter.shortNames?.includes(limited.model) === true && words.includes(limited.model);
  }

  /** Returns a warning for each of the first models that the programs do not know: such a budget limits nobody. */
  warningsAbout({ operatorKeys, personLines, groupLines }: LimitedLines): string[] {
    const lines = [...operatorKeys, ...personLines, ...groupLines, ...groupLines.map(({ each }) => each ?? {})];
    const models = lines
      .flatMap(({ featureOptions = {} }) => budgetsIn({ featureOptions }))
      .flatMap(({ model }) => model ?? []);
    const unknown = [...new Set(models)].filter((model) => !this.#mayExist(model));
    return unknown
      .slice(0, maxWarnings)
      .map((model) => `MODEL_API_KEYS_FILE: a budget is for ${model}, but no model CLI has a model of this name`);
  }

  #mayExist(model: string): boolean {
    const name = this.resolve(model);
    const { models, modelForm } = this.#names.split(name).cli.adapter;
    const isUnlisted = models === null && modelForm === undefined;
    return isUnlisted || this.#names.isModel(name) || this.#names.choice.allowed?.includes(name) === true;
  }

  /** Returns a public name, and the name of the model that has answered for it, if one is known. */
  #namesOf(name: string): string[] {
    const isDefault = name === '' || name === defaultModelName;
    const answering = this.#usage.answeringModel(isDefault ? '' : name) || this.#usage.answeringModel(name);
    return [isDefault ? defaultModelName : name, ...(answering === '' ? [] : [answering])];
  }
}
