import { leaveIfPreferred } from '../../../src/features/background/preference.js';
import { FileReader } from '../../../src/features/files/references.js';
import type { FileCalls } from '../../../src/features/files/shared.js';
import { RequestHooks } from '../../../src/worker/features/request-hooks.js';
import type { Primary } from '../../../src/worker/http/exchange.js';
import type { ReadReferences } from '../../../src/worker/jobs/file-references.js';

/** Hooks of a worker without features. */
export const noFeatures = new RequestHooks([], {});

/** Hooks of a worker that only reads files, and accepts background jobs. */
export function readingFiles(primary: Primary, limitBytes: number): RequestHooks {
  const reader = new FileReader(primary as unknown as FileCalls, limitBytes);
  const readFiles: ReadReferences = (found, sender) => reader.read(found, sender);
  return new RequestHooks([{ routes: [], readFiles, leaveJob: leaveIfPreferred }], {});
}
