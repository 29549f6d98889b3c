import type { ModelsBody } from '../../shared/api/models.js';
import { type Paint, plain } from './paint.js';
import { aligned } from './words.js';

/** The id first, for `cut` and the eye; a star marks the default. */
export function renderModels({ models }: ModelsBody, paint: Paint): string[] {
  const rows = models.map(({ id, name, default: isDefault, description }) => [
    id,
    isDefault ? '*' : '',
    [name === id ? '' : name, description ?? ''].filter((text) => text !== '').join(': '),
  ]);
  return aligned(rows.map((row) => row.map(plain))).map((line, index) =>
    models[index]?.default ? paint.bold(line) : line,
  );
}
