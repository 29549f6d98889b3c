import type { Capabilities } from '../../primary/cli/contract/adapter.js';
import type { PrimaryPart } from '../../primary/features/feature.js';
import { invalid } from '../../shared/errors.js';
import type { JobRequest } from '../../shared/job.js';
import { documentTable, type ReadType, readTypes } from '../../shared/tables/document-types.js';
import { attachmentsIn } from '../../shared/text/turns.js';
import { documentReader, withDocumentTexts } from './document-texts.js';
import { readerMissing, type TextReaders } from './text-reader.js';

type DocumentHooks = Required<Pick<PrimaryPart, 'job' | 'modelCapabilities'>>;

/** Creates the hooks of jobs with documents. Programs that take none get their texts. */
export function documentHooks(readers: TextReaders<'readText' | 'isMissing'>): DocumentHooks {
  return {
    job: {
      checkRoute: (request, { cli: { program } }) => {
        const types = program.extras === null ? [] : typesToRead(program.extras, request);
        const unread = types.find((type) => readers[type].isMissing);
        if (unread !== undefined) throw invalid('files', readerMissing(unread));
      },
      prepare: (turn, { request, signal }, extras) =>
        withDocumentTexts(turn, extras.document !== undefined, documentReader(readers, request.client, signal)),
    },
    modelCapabilities: ({ document }) => ({ pdf: document !== undefined || !readers['application/pdf'].isMissing }),
  };
}

/** Returns the types of documents in this request whose text a program must read: see `withDocumentTexts`. */
function typesToRead(extras: Capabilities, request: JobRequest): readonly ReadType[] {
  const messages = [request, ...request.history];
  const inResults = attachmentsIn(messages.map(({ results }) => ({ results })));
  const isRead = (type: ReadType) => extras.document === undefined || !documentTable[type].isNative;
  return readTypes.filter((type) =>
    (isRead(type) ? attachmentsIn(messages) : inResults).some(({ mediaType }) => mediaType === type),
  );
}
