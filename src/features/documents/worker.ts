import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import { DocumentInspector, inspectionThread } from './document-inspector.js';

export function createPart({ clock, onFault }: WorkerCore): WorkerPart {
  return { routes: [], documents: new DocumentInspector(inspectionThread(clock, onFault).inspect) };
}
