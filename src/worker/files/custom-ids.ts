import { identifiedLine } from '../../shared/api/files.js';
import { invalid } from '../../shared/errors.js';
import { IdSet } from '../../shared/text/id-set.js';
import { linesOf } from '../../shared/text/json-lines.js';
import { readJsonText } from '../http/body.js';
import type { Primary } from '../http/exchange.js';
import { filePieces } from './content.js';

const maxShown = 64;

/**
 * Rejects with `validation_error` if two lines of a file have the same `custom_id`. Invalid lines are skipped:
 * each of them gets an error as its result. Memory holds one line, and at most 23 bytes for each ID.
 */
export async function refuseRepeatedIds(
  primary: Primary,
  { id, client }: { readonly id: string; readonly client: string },
  signal: AbortSignal,
): Promise<void> {
  const { purpose } = await primary.call('file', { id, client });
  if (purpose !== 'batch') return; // the primary refuses this file
  const known = new IdSet();
  for await (const { text, number } of linesOf(filePieces(primary, id, client))) {
    signal.throwIfAborted();
    const customId = customIdIn(text);
    if (customId === null || known.add(customId)) continue;
    const shown = JSON.stringify(customId.slice(0, maxShown));
    throw invalid('input_file_id', `has the custom_id ${shown} in line ${number} and in an earlier line`);
  }
}

function customIdIn(text: string): string | null {
  try {
    return readJsonText(text, identifiedLine).custom_id;
  } catch {
    return null;
  }
}
