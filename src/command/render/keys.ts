import type { ApiKey } from '../../shared/config/api-keys.js';
import { alignColumns } from '../../shared/text/format.js';
import type { Paint } from '../../shared/text/paint.js';

/** One line for each key, its name first. */
export function renderKeys(keys: readonly Omit<ApiKey, 'digest'>[], now: number, paint: Paint): string[] {
  const rows = keys.map((key) => [key.name, key.scopes.join('+'), limitsOf(key).join(' ')]);
  return alignColumns(rows).map((line, index) => {
    const expiresAt = keys[index]?.expiresAt ?? null;
    return expiresAt !== null && expiresAt <= now ? `${line} ${paint.red('expired')}` : line;
  });
}

/** As the keys file writes them. */
function limitsOf({
  rate,
  maxConcurrent,
  maxQueued,
  models,
  hasSubclients,
  expiresAt,
}: Omit<ApiKey, 'digest'>): string[] {
  return [
    ...(rate === null ? [] : [`rate=${rate.maxRequests}/${rate.windowMs / 1000}`]),
    ...(maxConcurrent === null ? [] : [`concurrent=${maxConcurrent}`]),
    ...(maxQueued === null ? [] : [`queue=${maxQueued}`]),
    ...(models === null ? [] : [`models=${models.join('+')}`]),
    ...(hasSubclients ? ['subclients'] : []),
    ...(expiresAt === null ? [] : [`expires=${new Date(expiresAt).toISOString().slice(0, 10)}`]),
  ];
}
