import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { inLine } from '../../shared/async.js';
import { setNewest } from '../../shared/bounded-map.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import { replaceFile } from '../../shared/replace-file.js';
import type { ModelSizes } from './contract/model-rules.js';
import type { OwnModel } from './route.js';

/** Clients may name any number of models. */
const maxModels = 500;

const tokenLimit = z.int().positive().nullable();
const storedSizes = z.array(
  z.strictObject({
    cli: z.string(),
    /** Name of the model at its CLI; null for the CLI's default. */
    model: z.string().nullable(),
    maxInputTokens: tokenLimit,
    maxOutputTokens: tokenLimit,
    /** Tokens of the model for each token of the o200k tokenizer. */
    tokenFactor: z.number().positive().optional(),
  }),
);
type SizesEntry = z.infer<typeof storedSizes>[number];

type NamedModel = OwnModel<{ readonly name: string }>;

/**
 * Remembers the sizes of models that the CLIs have reported with their answers, and their token factors, in a file if
 * there is a state folder.
 */
export class LearnedSizes {
  readonly #path: string | null;
  readonly #log: Pick<Logger, 'warn'>;
  readonly #entries = new Map<string, SizesEntry>();
  readonly #inLine = inLine();
  #isWriteDue = false;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(path: string | null, log: Pick<Logger, 'warn'>) {
    this.#path = path;
    this.#log = log;
  }

  /** Reads the file. A missing or broken file is the same as an empty one, because the CLIs report their sizes again. */
  async load(): Promise<void> {
    if (this.#path === null) return;
    const text = await readFile(this.#path, 'utf8').catch(() => '[]');
    for (const entry of parsedSizes(text).slice(-maxModels)) this.#set(entry);
  }

  sizesOf(model: NamedModel): ModelSizes | null {
    return this.#entries.get(keyOf(model)) ?? null;
  }

  /** Records what the CLI has reported, and writes the file if it is new. */
  recordSizes(model: NamedModel, { maxInputTokens, maxOutputTokens }: ModelSizes): void {
    const known = this.sizesOf(model);
    if (known?.maxInputTokens === maxInputTokens && known.maxOutputTokens === maxOutputTokens) return;
    this.#change(model, { maxInputTokens, maxOutputTokens });
  }

  /** Returns the learnt token factor of a model; undefined if there is none. */
  factorOf(model: NamedModel): number | undefined {
    return this.#entries.get(keyOf(model))?.tokenFactor;
  }

  /** Records a token factor, and writes the file if it differs by more than a percent. */
  recordFactor(model: NamedModel, factor: number): void {
    const known = this.factorOf(model) ?? 0;
    if (Math.abs(factor - known) > known / 100) this.#change(model, { tokenFactor: factor });
  }

  #change(model: NamedModel, change: Partial<SizesEntry>): void {
    const unknown = { cli: model.cli.name, model: model.model, maxInputTokens: null, maxOutputTokens: null };
    this.#set({ ...unknown, ...this.#entries.get(keyOf(model)), ...change });
    if (this.#isWriteDue) return; // the next write contains this report too
    this.#isWriteDue = true;
    this.#lastWrite = this.#inLine(() => this.#write());
  }

  #set(entry: SizesEntry): void {
    setNewest(this.#entries, keyOf({ cli: { name: entry.cli }, model: entry.model }), entry, maxModels);
  }

  /** Resolves when the file has been written. */
  async untilWritten(): Promise<void> {
    await this.#lastWrite;
  }

  async #write(): Promise<void> {
    this.#isWriteDue = false;
    if (this.#path === null) return;
    const text = `${JSON.stringify([...this.#entries.values()], null, 1)}\n`;
    await replaceFile(this.#path, text).catch((error: unknown) => {
      this.#log.warn('model_sizes_not_written', { error: describeError(error) });
    });
  }
}

function keyOf({ cli, model }: NamedModel): string {
  return `${cli.name}/${model ?? ''}`;
}

function parsedSizes(text: string): SizesEntry[] {
  try {
    return storedSizes.safeParse(JSON.parse(text)).data ?? [];
  } catch {
    return [];
  }
}
