import { createInspection } from './document-inspection.js';

/** Inspects a document in a thread, because a PDF of some kilobytes may expand to megabytes. */
export const inspect = createInspection();
