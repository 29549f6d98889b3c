import { createInspection } from '../../../src/features/documents/document-inspection.js';
import { DocumentInspector } from '../../../src/features/documents/document-inspector.js';

/** Returns an inspector without a thread. */
export function documentInspector(): DocumentInspector {
  const inspect = createInspection();
  return new DocumentInspector(async (task) => inspect(task));
}
