import { randomUUID } from 'node:crypto';
import { cancelled, fromWire, invalid, isCancelled, isDefect, RelayError, toRelayError } from '../../shared/errors.js';
import type { BatchApi, LineFault, LineResult } from '../../shared/files.js';
import type { Handlers, RequestOf } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { messageBatchLines } from '../anthropic/batch-lines.js';
import type { Primary } from '../http/exchange.js';
import type { SentBody } from '../http/responses.js';
import { formOf, storedBody } from '../jobs/background.js';
import type { BatchLines, ParsedLine } from '../jobs/batch-lines.js';
import type { DocumentInspector } from '../jobs/document-inspector.js';
import type { FileReferences } from '../jobs/file-references.js';
import { inWordsOf, noFallback, requestOf } from '../jobs/job-request.js';
import { chatBatchLines, responsesBatchLines } from '../openai/batch-lines.js';
import { doorBody } from './answers.js';

const linesOf: Readonly<Record<BatchApi, BatchLines>> = {
  chat: chatBatchLines,
  responses: responsesBatchLines,
  messages: messageBatchLines,
};

const faults: Readonly<Record<LineFault, string>> = {
  too_long: 'is longer than a request may be (MODEL_API_BODY_LIMIT)',
  not_utf8: 'must be valid UTF-8',
  missing: 'was removed with its file',
  no_room: 'was not sent, because the files of this client have no room for its result (MODEL_API_FILES_MB)',
};

type LineCalls = 'submitLine' | 'finishLine' | 'endLines';

/** Dependencies of the lines. `onDefect` gets unexpected errors, which become results of lines. */
export interface LineParts {
  readonly primary: Primary;
  readonly files: Pick<FileReferences, 'fill'>;
  readonly documents: Pick<DocumentInspector, 'inspectJob'>;
  readonly onDefect: (error: unknown) => void;
}

/** Returns the handlers for the lines of batches. */
export function lineHandlers(parts: () => LineParts): Pick<Handlers<WorkerCalls>, LineCalls> {
  return {
    submitLine: async (order) => ({ refused: await submitLine(parts(), order) }),
    finishLine: (order) => finishLine(parts().primary, order),
    endLines: ({ api, texts, cause }) => {
      const { customIdIn, ended } = linesOf[api];
      const results = texts.map((text) => ({ text: ended(customIdIn(objectIn(text)), cause), outcome: cause }));
      return { results };
    },
  };
}

/** Submits the job of a line. Returns the result of a line that is refused. */
async function submitLine(
  { primary, files, documents, onDefect }: LineParts,
  { api, client, caller, jobId, text, fault }: RequestOf<WorkerCalls, 'submitLine'>,
): Promise<LineResult | null> {
  const lines = linesOf[api];
  const requestId = randomUUID();
  const customId = lines.customIdIn(objectIn(text));
  let line: ParsedLine | null = null;
  try {
    if (text === null || fault !== null) throw invalid('line', faults[fault ?? 'missing']);
    const sender = { client, bytes: Buffer.byteLength(text) };
    line = await lines.parse(text, (body, forms) => files.fill(body, forms, sender));
    const { parsed, repeated, isLegacyCall = false } = line;
    if (parsed.job.stream) throw invalid('stream', 'must not be true in a batch');
    const header = (name: string) => (name === noFallback && caller.refusesFallback ? '1' : undefined);
    const source = { locals: { requestId, trace: null, client, groups: caller.groups }, req: { get: header } };
    const job = await requestOf({ ...parsed.job, stream: true }, { primary, documents }, source);
    const { forms: tools, ignored, droppedTools } = parsed;
    const named = { customId: customId ?? '', ignored, isLegacyCall };
    const form = { route: lines.route, model: parsed.model, tools, isStructured: job.schema !== null, line: named };
    if (droppedTools.length > 0) primary.call('toolsIgnored', { client, route: lines.route }).catch(() => {});
    await primary.call('accept', { id: jobId, job, form: { ...form, ...(repeated && { repeated }) } });
    return null;
  } catch (thrown) {
    if (isTemporary(thrown)) throw thrown;
    if (isDefect(thrown)) onDefect(thrown);
    const error = toRelayError(line === null ? thrown : inWordsOf(line.parsed, thrown));
    return { text: lines.failed(customId, requestId, error), outcome: 'errored' };
  }
}

const temporaryCodes: readonly string[] = ['concurrency_limited', 'rate_limited', 'shutting_down', 'store_unavailable'];

/** Whether the same line may be accepted later. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof RelayError)) return false;
  return isCancelled(error) || temporaryCodes.includes(error.code) || error.retryAfterSeconds !== undefined;
}

async function finishLine(
  primary: Primary,
  { api, client, jobId, cause }: RequestOf<WorkerCalls, 'finishLine'>,
): Promise<LineResult> {
  const lines = linesOf[api];
  const job = await primary.call('job', { id: jobId, client });
  const { line } = formOf(job);
  const customId = line?.customId ?? '';
  const { requestId, failure } = job;
  if (job.status === 'cancelled' && cause !== null) return { text: lines.ended(customId, cause), outcome: cause };
  if (job.status !== 'succeeded') {
    const error = failure === null ? new RelayError('forbidden', 'the job was cancelled') : fromWire(failure);
    return { text: lines.failed(customId, requestId, error), outcome: 'errored' };
  }
  const write = doorBody(job);
  const body = await textOf(await storedBody(primary, job, client, (answer) => stringifyExactly(write(answer))));
  return { text: lines.answered(customId, { requestId, body, ignored: line?.ignored ?? [] }), outcome: 'succeeded' };
}

async function textOf(body: SentBody): Promise<string> {
  if (body.short !== null) return body.short;
  const pieces: string[] = [];
  for await (const piece of body.pieces()) {
    if (typeof piece !== 'string') throw cancelled('a stored answer has only text');
    pieces.push(piece);
  }
  return pieces.join('');
}

/** Parses a line that may be no valid JSON. */
function objectIn(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
}
