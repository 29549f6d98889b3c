import { createInspection } from '../../../src/worker/jobs/document-inspection.js';
import { DocumentInspector } from '../../../src/worker/jobs/document-inspector.js';

/** Returns an inspector without a thread. */
export function documentInspector(): DocumentInspector {
  const inspect = createInspection();
  return new DocumentInspector(async (task) => inspect(task));
}
