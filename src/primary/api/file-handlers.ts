import type { SharedHandlers } from '../workers/worker-handle.js';
import type { Services } from './handlers.js';

type FileCalls = 'createFile' | 'appendFile' | 'completeFile' | 'file' | 'filePiece' | 'files' | 'deleteFile';
type BatchCalls = 'checkBatch' | 'createBatch' | 'batch' | 'batches' | 'cancelBatch' | 'deleteBatch';

/** Returns the handlers for files and batches. `yieldInOrder`: see `orderedYield`. */
export function fileHandlers(
  { files, batches, noteActivity }: Pick<Services, 'files' | 'batches' | 'noteActivity'>,
  yieldInOrder: () => Promise<void>,
): Pick<SharedHandlers, FileCalls | BatchCalls> {
  return {
    createFile: async (file) => ({ id: await files.create(file) }),
    appendFile: async ({ id, client, data }) => {
      noteActivity();
      await files.append(id, client, Buffer.from(data, 'base64'));
    },
    completeFile: (upload) => files.complete(upload),
    file: ({ id, client }) => files.find(id, client),
    filePiece: async ({ id, client, from, to }) => {
      noteActivity();
      await yieldInOrder();
      const piece = await files.read(id, client, from);
      return { data: piece.subarray(0, to === undefined ? undefined : to - from).toString('base64') };
    },
    files: ({ order, purpose }) => files.list(order, purpose),
    deleteFile: ({ id, client }) => files.remove(id, client),
    checkBatch: ({ client, ...input }) => batches.checkInput(client, input),
    createBatch: (batch) => batches.create(batch),
    batch: ({ id, client }) => batches.get(id, client),
    batches: ({ order, apis }) => batches.list(order, apis),
    cancelBatch: ({ id, client }) => batches.cancel(id, client),
    deleteBatch: ({ id, client }) => batches.remove(id, client),
  };
}
