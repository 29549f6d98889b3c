import type { CreatePrimaryPart, PrimaryCore, PrimaryPart } from '../../primary/features/feature.js';
import type { StoredKind } from '../../primary/features/stored-kind.js';
import type { Config } from '../../shared/config/config.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { formatSpan } from '../../shared/text/format.js';
import { type StoringCore, usingStore } from '../stores/contract/full-store.js';
import { type calls, commonLimits, type FileValues } from './shared.js';
import { StoredFiles } from './stored-files.js';

export function createFiles(values: FileValues): CreatePrimaryPart {
  return usingStore((core) => new FilesPart(values, core));
}

/** Returns the files of the service, for features that come later in the list. */
export function filesOf({ earlierParts }: Pick<PrimaryCore, 'earlierParts'>): StoredFiles {
  const part = earlierParts.find((each) => each instanceof FilesPart);
  if (part === undefined) throw new Error('the files must come earlier in the list of features');
  return part.files;
}

class FilesPart implements PrimaryPart {
  readonly files: StoredFiles;
  readonly handlers: Handlers<typeof calls>;
  readonly storedKinds: readonly StoredKind[];

  constructor(values: FileValues, { host, store, config, yieldInOrder, mayStore }: StoringCore) {
    this.files = new StoredFiles(store.files, values, host.clock, mayStore);
    this.handlers = handlersOf(this.files, { noteActivity: () => host.heap.touch(), yieldInOrder });
    this.storedKinds = [storedFiles(config.store, values)];
  }
}

/** `noteActivity` is called after each call that leaves garbage. */
function handlersOf(
  files: StoredFiles,
  { noteActivity, yieldInOrder }: { readonly noteActivity: () => void } & Pick<PrimaryCore, 'yieldInOrder'>,
): Handlers<typeof calls> {
  return {
    createFile: async (file) => ({ id: await files.createFile(file) }),
    appendFile: async ({ id, client, data }) => {
      noteActivity();
      await files.appendPiece(id, client, Buffer.from(data, 'base64'));
    },
    completeFile: (upload) => files.completeFile(upload),
    file: ({ id, client }) => files.findFile(id, client),
    filePiece: async ({ id, client, from, to }) => {
      noteActivity();
      await yieldInOrder();
      const piece = await files.readPiece(id, client, from);
      return { data: piece.subarray(0, to === undefined ? undefined : to - from).toString('base64') };
    },
    files: ({ order, purpose }) => files.listFiles(order, purpose),
    deleteFile: ({ id, client }) => files.removeFile(id, client),
  };
}

/** Returns what all kinds of stored files have in common. */
export function storedAsFiles(
  store: Config['store'],
  values: FileValues,
): Pick<StoredKind, 'place' | 'readers' | 'variables'> & { readonly keptMs: number } {
  return {
    place: values.MODEL_API_FILES === 'off' ? 'nowhere' : store.dataPlace,
    ...{ keptMs: commonLimits(values, store.kind !== 'memory').ttlMs, readers: ['client', 'host'] },
    variables: ['MODEL_API_STORE', 'MODEL_API_FILES', 'MODEL_API_FILES_TTL_SECONDS'],
  };
}

export function storedFiles(store: Config['store'], values: FileValues): StoredKind {
  const common = storedAsFiles(store, values);
  return {
    ...{ kind: 'files', content: 'uploaded files, and the results of batches', ...common },
    until: `${formatSpan(common.keptMs)} after its creation, or longer if an unfinished batch needs it`,
    ...{ export: 'GET /v1/files/{id}/content', deletion: 'DELETE /v1/files/{id}' },
  };
}
