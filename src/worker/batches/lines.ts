import { randomUUID } from 'node:crypto';
import { cancelled, fromWire, invalid, isCancelled, isDefect, RelayError, toRelayError } from '../../shared/errors.js';
import type { LineOrder, LineResult } from '../../shared/files.js';
import type { Handlers, RequestOf } from '../../shared/ipc/peer.js';
import type { WorkerCalls } from '../../shared/ipc/protocol.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { filePieces } from '../files/content.js';
import type { SentBody } from '../http/answer-recorder.js';
import type { Primary } from '../http/exchange.js';
import { formOf, storedBody } from '../jobs/background.js';
import type { BatchTable, ParsedLine } from '../jobs/batch-lines.js';
import type { JobInspector } from '../jobs/documents.js';
import type { FileReferences } from '../jobs/file-references.js';
import { inWordsOf, noFallback, requestOf } from '../jobs/job-request.js';
import { doorBody, linesOf } from './answers.js';

const faults = {
  tooLong: 'is longer than a request may be (MODEL_API_BODY_LIMIT)',
  missing: 'was removed with its file',
  noRoom: 'was not sent, because the files of this client have no room for its result (MODEL_API_FILES_MB)',
};

type LineCalls = 'submitLine' | 'finishLine' | 'endLines';

/**
 * Dependencies of the lines. `limitBytes`: longest line. `batchLines`: lines of features. `onDefect` gets unexpected
 * errors, which become results of lines.
 */
export interface LineParts {
  readonly primary: Primary;
  readonly files: Pick<FileReferences, 'fill'>;
  readonly documents: JobInspector;
  readonly limitBytes: number;
  readonly batchLines: BatchTable;
  readonly onDefect: (error: unknown) => void;
}

/** Returns the handlers for the lines of batches. */
export function lineHandlers(parts: () => LineParts): Pick<Handlers<WorkerCalls>, LineCalls> {
  return {
    submitLine: async (order) => ({ refused: await submitLine(parts(), order) }),
    finishLine: (order) => finishLine(parts(), order),
    endLines: ({ api, ids, cause }) => {
      const { customIdIn, ended } = linesOf(api, parts().batchLines);
      const results = ids.map((id) => ({ text: ended(customIdIn(id), cause), outcome: cause }));
      return { results };
    },
  };
}

/** Submits the job of a line. Returns the result of a line that is refused. */
async function submitLine(parts: LineParts, order: LineOrder): Promise<LineResult | null> {
  const { primary, files, documents, onDefect } = parts;
  const { api, client, caller, jobId } = order;
  const lines = linesOf(api, parts.batchLines);
  const requestId = randomUUID();
  const customId = lines.customIdIn(order.line.id);
  let line: ParsedLine | null = null;
  try {
    const bytes = await bytesOf(parts, order);
    const sender = { client, bytes: bytes.length };
    line = await lines.parse(bytes, (body, forms) => files.fill(body, forms, sender));
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

const [lineFeed] = Buffer.from('\n');
const byteOrderMark = Buffer.from('\ufeff');

/** Reads a line from its file, without its end. Rejects with `validation_error` if it cannot be a request. */
async function bytesOf(
  { primary, limitBytes }: LineParts,
  { client, file, line: { start, end }, hasRoom }: LineOrder,
): Promise<Buffer> {
  if (!hasRoom) throw invalid('line', faults.noRoom);
  if (end - start > limitBytes + 1) throw invalid('line', faults.tooLong);
  const pieces: Buffer[] = [];
  try {
    for await (const piece of filePieces(primary, file, client, { start, end })) pieces.push(piece);
  } catch (error) {
    throw error instanceof RelayError && error.code === 'not_found' ? invalid('line', faults.missing) : error;
  }
  const whole = Buffer.concat(pieces);
  if (whole.length < end - start || whole.length === 0) throw invalid('line', faults.missing);
  const line = whole.at(-1) === lineFeed ? whole.subarray(0, -1) : whole;
  if (line.length > limitBytes) throw invalid('line', faults.tooLong);
  return line.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? line.subarray(byteOrderMark.length) : line;
}

const temporaryCodes: readonly string[] = ['concurrency_limited', 'rate_limited', 'shutting_down', 'store_unavailable'];

/** Whether the same line may be accepted later. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof RelayError)) return false;
  return isCancelled(error) || temporaryCodes.includes(error.code) || error.retryAfterSeconds !== undefined;
}

async function finishLine(
  { primary, batchLines }: LineParts,
  { api, client, jobId, cause }: RequestOf<WorkerCalls, 'finishLine'>,
): Promise<LineResult> {
  const lines = linesOf(api, batchLines);
  const job = await primary.call('job', { id: jobId, client });
  const { line } = formOf(job);
  const customId = line?.customId ?? '';
  const { requestId, failure } = job;
  if (job.status === 'cancelled' && cause !== null) return { text: lines.ended(customId, cause), outcome: cause };
  if (job.status !== 'succeeded') {
    const error = failure === null ? new RelayError('forbidden', 'the job was cancelled') : fromWire(failure);
    return { text: lines.failed(customId, requestId, error), outcome: 'errored' };
  }
  const write = doorBody(job, batchLines);
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
