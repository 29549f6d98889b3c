import type { ClientText } from '../../shared/client.js';
import { invalid } from '../../shared/errors.js';
import { type Attachment, type FileDocument, isDocument, type Message } from '../../shared/job.js';
import { binaryTypes, type DocumentType } from '../../shared/tables/document-types.js';
import { wellFormed } from '../../shared/text/well-formed.js';

/** Document of a request before its inspection; digest and pages are still unknown. */
export interface SentDocument extends Omit<FileDocument, 'at' | 'pages' | 'data'> {
  /** Whether `data` is the bytes in base64, or the text. */
  readonly form: 'base64' | 'text';
  readonly mediaType: DocumentType;
  readonly data: string;
  /** Field of the request, for errors. */
  readonly path: string;
}

/** Parts of a job in which documents can be. */
export type JobContent = Pick<Message, 'images' | 'results'> & { readonly history?: readonly Message[] | undefined };

/** Inspects the documents of jobs. */
export interface JobInspector {
  /**
   * Returns a job with inspected documents. Rejects with `validation_error`, which names the field of a faulty document,
   * and with `concurrency_limited`.
   */
  inspectJob<Job extends JobContent>(job: Job, client: ClientText): Promise<Job>;
}

/** Refuses each document, because no feature inspects it. */
export const noDocuments: JobInspector = {
  inspectJob: async (job) => {
    const [document] = sentDocuments(job);
    if (document !== undefined) throw invalid(document.path, 'must not be sent: this service takes no documents');
    return job;
  },
};

/** Whether an attachment is a document that is not inspected yet. */
export function isSent(attachment: Attachment): attachment is Attachment & SentDocument {
  return isDocument(attachment) && 'form' in attachment;
}

/** Returns the documents of a job that are not inspected yet. */
export function sentDocuments({ images = [], results = [], history = [] }: JobContent): SentDocument[] {
  const shown = [...images, ...results.flatMap((result) => result.images ?? [])].filter(isSent);
  return [...history.flatMap(sentDocuments), ...shown];
}

const maxNameLength = 255;

/** Types of files that are plain text, beside `text/*`. */
const textTypes =
  /^(?:text\/|application\/(?:json|jsonl|x-ndjson|xml|yaml|x-yaml|toml|javascript|sql|csv)$|.+\+(?:json|xml)$)/;

/**
 * Returns a document in base64, whose bytes are inspected later. `name`: the unchecked name of the file. Throws
 * `validation_error` that names the field.
 */
export function documentOf(mediaType: string, data: string, path: string, name: unknown = null): SentDocument {
  const sent = mediaType.toLowerCase().split(';', 1)[0]?.trim() ?? '';
  const type = textTypes.test(sent) ? 'text/plain' : binaryTypes.find((each) => each === sent);
  if (type === undefined)
    throw invalid(path, `must be ${binaryTypes.join(', ')}, or a type of text such as text/plain`);
  return { form: 'base64', mediaType: type, data, digest: '', name: nameOf(name, path), path };
}

/** Returns a document that is a text, which is inspected later. Throws `validation_error` that names the field. */
export function textDocument(data: string, path: string, name: unknown = null): SentDocument {
  return { form: 'text', mediaType: 'text/plain', data, digest: '', name: nameOf(name, path), path };
}

function nameOf(name: unknown, path: string): string {
  if (name != null && typeof name !== 'string') throw invalid(path, 'must have a string as its name');
  // The name becomes part of the text for the model, and must stay on its line.
  const plainName = wellFormed(name ?? '')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
  if (plainName.length > maxNameLength) throw invalid(path, `must have a name of at most ${maxNameLength} characters`);
  return plainName;
}
