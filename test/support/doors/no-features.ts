import { FileReader } from '../../../src/features/files/references.js';
import type { FileCalls } from '../../../src/features/files/shared.js';
import { RequestHooks } from '../../../src/worker/features/request-hooks.js';
import type { Primary } from '../../../src/worker/http/exchange.js';

/** Hooks of a worker without features. */
export const noFeatures = new RequestHooks([], {});

/** Hooks of a worker that only reads files. */
export function readingFiles(primary: Primary, limitBytes: number): RequestHooks {
  const reader = new FileReader(primary as unknown as FileCalls, limitBytes);
  return new RequestHooks([{ routes: [], readFiles: (found, sender) => reader.read(found, sender) }], {});
}
