import { join } from 'node:path';
import { maxDocuments } from '../../shared/api/ask.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { invalid, RelayError, retryAfter } from '../../shared/errors.js';
import type { Attachment } from '../../shared/job.js';
import { LimitedThread, TooManyTasks } from '../../shared/threads/limited-thread.js';
import {
  isSent,
  type JobContent,
  type JobInspector,
  type SentDocument,
  sentDocuments,
} from '../../worker/jobs/documents.js';
import { createInspection, type DocumentFinding, type DocumentTask } from './document-inspection.js';

/** Time limit of an inspection. The largest PDF takes a third of a second. */
const limitMs = 5000;
/** The thread ends without a document for this long. */
const idleMs = 600_000;
/** Memory of the thread for strings and objects. A document of 64 MB needs twice its size. */
const threadMegabytes = 256;
const firstTask: DocumentTask = { form: 'text', mediaType: 'text/plain', data: '' };
/** Length of a text up to which its inspection takes less time than its way to the thread and back. */
const shortText = 32 * 1024;
/** Limits for the documents that wait for their inspection, in total and for each client. A single one may be larger. */
const maxWaitingLength = 256 * 1024 ** 2;
const maxClientLength = maxWaitingLength / 2;

/** Inspects one document. `line`: lines take turns. */
type Inspect = (task: DocumentTask, line: string) => Promise<DocumentFinding>;

/** Inspects the documents of requests outside of the event loop of the worker. Key holders, users and addresses take turns. */
export class DocumentInspector implements JobInspector {
  readonly #inspect: Inspect;
  readonly #inspectShortText = createInspection();
  /** Lengths of the waiting documents by client. */
  readonly #waiting = new Map<string, number>();
  #waitingLength = 0;

  constructor(inspect: Inspect) {
    this.#inspect = inspect;
  }

  /** Equal documents of a job are inspected once. */
  async inspectJob<Job extends JobContent>(job: Job, client: ClientText): Promise<Job> {
    const documents = sentDocuments(job);
    if (documents.length === 0) return job;
    const findings: { readonly document: SentDocument; readonly finding: DocumentFinding }[] = [];
    for (const [index, document] of documents.entries()) {
      if (index >= maxDocuments)
        throw invalid(document.path, `is document ${index + 1}: a request may have ${maxDocuments}`);
      if (findings.some((known) => isSameTask(known.document, document))) continue;
      const finding = await this.#find(document, holderOf(client));
      if ('fault' in finding) throw invalid(document.path, finding.fault);
      findings.push({ document, finding });
    }
    const inspected = (document: SentDocument) => {
      const finding = findings.find((known) => isSameTask(known.document, document))?.finding;
      if (finding === undefined || 'fault' in finding) throw new Error('a document was not inspected');
      return finding;
    };
    return withFindings(job, inspected);
  }

  async #find(document: SentDocument, client: ClientText): Promise<DocumentFinding> {
    const { form, mediaType, data } = document;
    const task = { form, mediaType, data };
    if (mediaType === 'text/plain' && data.length <= shortText) return this.#inspectShortText(task);
    using _ = this.#reserve(data.length, client);
    return await this.#inspect(task, client);
  }

  /** Counts a document until its inspection has ended. Throws `concurrency_limited` if too many wait. */
  #reserve(length: number, client: ClientText): Disposable {
    const clientLength = this.#waiting.get(client) ?? 0;
    const isClientFull = clientLength > 0 && clientLength + length > maxClientLength;
    const isFull = this.#waitingLength > 0 && this.#waitingLength + length > maxWaitingLength;
    if (isClientFull || isFull) throw tooMany();
    this.#add(length, client);
    return { [Symbol.dispose]: () => this.#add(-length, client) };
  }

  #add(length: number, client: ClientText): void {
    this.#waitingLength += length;
    const clientLength = (this.#waiting.get(client) ?? 0) + length;
    if (clientLength > 0) this.#waiting.set(client, clientLength);
    else this.#waiting.delete(client);
  }
}

/** Returns a function that inspects documents in a thread, which `close` ends. `onError` is called if the thread breaks. */
export function inspectionThread(
  clock: Clock,
  onError: (error: unknown) => void,
): { readonly inspect: Inspect; readonly close: () => Promise<void> } {
  const file = join(__dirname, 'document-thread.js');
  const limits = { limitMs, patienceMs: null, idleMs, maxMegabytes: threadMegabytes };
  const settings = { file, name: 'inspect', firstTask, ...limits };
  const thread = new LimitedThread<DocumentTask, DocumentFinding>(settings, clock, onError);
  const inspect: Inspect = (task, line) =>
    thread.runTask(task, { line }).catch((error: unknown) => {
      if (error instanceof TooManyTasks) throw tooMany();
      return { fault: `cannot be read within ${limitMs / 1000} s and ${threadMegabytes} MB of memory` };
    });
  return { inspect, close: () => thread.closeThread() };
}

function tooMany(): RelayError {
  return new RelayError('concurrency_limited', 'too many documents wait to be inspected', {
    retryAfterSeconds: retryAfter('body_memory'),
  });
}

function isSameTask(one: DocumentTask, other: DocumentTask): boolean {
  return one.form === other.form && one.mediaType === other.mediaType && one.data === other.data;
}

type FindingOf = (document: SentDocument) => Exclude<DocumentFinding, { readonly fault: string }>;

function withFindings<Content extends JobContent>(content: Content, findingOf: FindingOf): Content {
  const { images, results, history } = content;
  if (sentDocuments(content).length === 0) return content;
  const inspected = (attachments: readonly Attachment[]) => attachments.map((each) => finished(each, findingOf));
  return {
    ...content,
    ...(images && { images: inspected(images) }),
    ...(results && {
      results: results.map((each) => (each.images ? { ...each, images: inspected(each.images) } : each)),
    }),
    ...(history && { history: history.map((message) => withFindings(message, findingOf)) }),
  };
}

/** Returns a document as the model gets it. */
function finished(attachment: Attachment, findingOf: FindingOf): Attachment {
  if (!isSent(attachment)) return attachment;
  const { path: _path, form: _form, ...document } = attachment;
  const { data, ...finding } = findingOf(attachment);
  return { ...document, ...finding, data: data ?? document.data };
}
