import type { ModelEntry, ModelsBody } from '../shared/api/models.js';
import type { Clock } from '../shared/clock.js';
import type { ModelChoice } from './model-choice.js';

/** A list is asked for again after this time; a CLI that was updated may know other models. */
const maxAgeMs = 10 * 60_000;

/** Owns the list of models as the CLI last told it. */
export class ModelCatalog {
  readonly #ask: () => Promise<readonly ModelEntry[] | null>;
  readonly #choice: ModelChoice;
  readonly #clock: Clock;
  #told: { readonly models: Promise<readonly ModelEntry[]>; readonly askedMs: number } | null = null;

  constructor(ask: () => Promise<readonly ModelEntry[] | null>, choice: ModelChoice, clock: Clock) {
    this.#ask = ask;
    this.#choice = choice;
    this.#clock = clock;
  }

  /**
   * What a request may name, one of them the default. The CLI's list only tells more of a model that is allowed: most
   * CLIs take more names than they list.
   */
  async list(): Promise<ModelsBody> {
    const known = new Map((await this.#known()).map((model) => [model.id, model]));
    const ids = this.#idsBeside([...known.keys()]);
    const byDefault = this.#choice.fallback ?? ids.find((id) => known.get(id)?.default) ?? ids[0];
    const models = ids.map((id) => ({ ...(known.get(id) ?? { id, name: id }), default: id === byDefault }));
    return { count: models.length, models };
  }

  #idsBeside(known: readonly string[]): string[] {
    const { allowed, fallback, label } = this.#choice;
    const ids = new Set([...(allowed ?? known), ...(fallback === null ? [] : [fallback])]);
    return ids.size > 0 ? [...ids] : [label ?? 'default'];
  }

  #known(): Promise<readonly ModelEntry[]> {
    const now = this.#clock.monotonicMs();
    if (this.#told === null || now - this.#told.askedMs > maxAgeMs) {
      this.#told = {
        models: this.#ask().then(
          (models) => models ?? [],
          () => this.#forget(),
        ),
        askedMs: now,
      };
    }
    return this.#told.models;
  }

  /** A failure is not remembered: the CLI may be there at the next request. */
  #forget(): readonly ModelEntry[] {
    this.#told = null;
    return [];
  }
}
