import type { ClientText } from '../../shared/client.js';
import { yieldToEventLoop } from '../../shared/clock.js';
import { invalid } from '../../shared/errors.js';
import { IdSet } from '../../shared/text/id-set.js';
import { filePieces } from '../files/content.js';
import type { FileCalls } from '../files/shared.js';
import { LineScanner, type ScannedLine } from './line-scanner.js';

const maxShown = 64;
/** Lines that are read in one turn of the event loop. */
const linesAtOnce = 1000;

/**
 * Rejects with `validation_error` if two lines of a file have the same `custom_id`. No line is parsed: each invalid one
 * gets an error as its result. Memory holds a piece of the file, and at most 23 bytes for each ID.
 */
export async function refuseRepeatedIds(
  primary: FileCalls,
  { id, client }: { readonly id: string; readonly client: ClientText },
  signal: AbortSignal,
): Promise<void> {
  const known = new IdSet();
  const scanner = new LineScanner();
  const add = ({ id: customId, number }: ScannedLine) => {
    if (customId === null || known.add(customId)) return;
    const shown = JSON.stringify(customId.slice(0, maxShown));
    throw invalid('input_file_id', `has the custom_id ${shown} in line ${number} and in an earlier line`);
  };
  signal.throwIfAborted();
  let count = 0;
  for await (const piece of filePieces(primary, id, client)) {
    for (const line of scanner.scan(piece)) {
      add(line);
      if (++count % linesAtOnce === 0) await yieldToEventLoop();
    }
    signal.throwIfAborted();
  }
  const last = scanner.last();
  if (last !== null) add(last);
}
