import { randomUUID } from 'node:crypto';
import { fromWire, invalid, isCancelled, isDefect, RelayError, toRelayError } from '../../shared/errors.js';
import { noRoomForResult } from '../../shared/files.js';
import type { Handlers, RequestOf } from '../../shared/ipc/peer.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import type { Primary } from '../../worker/http/exchange.js';
import type { JobInspector } from '../../worker/jobs/documents.js';
import { fillFiles, type ReadReferences } from '../../worker/jobs/file-references.js';
import { inWordsOf, noFallback, requestOf } from '../../worker/jobs/job-request.js';
import type { FillFiles, OfflineRequest, OfflineRoute, OfflineRoutes } from '../../worker/jobs/offline-routes.js';
import { formOf, jobCalls, storedFrame } from '../background/answers.js';
import { filePieces } from '../files/content.js';
import { apiOf } from './apis.js';
import type { LineForm } from './line-form.js';
import type { BatchCalls, workerCalls } from './shared.js';
import type { LineOrder, LineResult, WrittenLine } from './views.js';

const faults = {
  tooLong: 'is longer than a request may be (MODEL_API_BODY_LIMIT)',
  missing: 'was removed with its file',
};

/**
 * Dependencies of the lines. `limitBytes`: longest line. `features`: routes of the APIs, and what reads files. `onDefect`
 * gets unexpected errors, which become results of lines.
 */
export interface LineParts {
  readonly primary: Primary;
  readonly fileCalls: BatchCalls;
  readonly features: { readonly offlineRoutes: OfflineRoutes; readonly readFiles: ReadReferences | null };
  readonly documents: JobInspector;
  readonly limitBytes: number;
  readonly onDefect: (error: unknown) => void;
}

/** Returns the handlers for the lines of batches. */
export function lineHandlers(parts: LineParts): Handlers<typeof workerCalls> {
  return {
    submitLine: async (order) => ({ refused: await submitLine(parts, order) }),
    writeLine: (order) => writeLine(parts, order),
    endLines: ({ api, ids, cause }) => {
      const { customIdIn, ended } = apiOf(api).form;
      const results = ids.map((id) => ({ text: ended(customIdIn(id), cause), outcome: cause }));
      return { results };
    },
  };
}

/** API of a batch in this worker. */
interface LineApi {
  readonly name: string;
  readonly form: LineForm;
  /** Null if this service no longer has the API. */
  readonly route: OfflineRoute | null;
}

function lineApi(api: string, { features }: LineParts): LineApi {
  const { route: name, form } = apiOf(api);
  return { name, form, route: features.offlineRoutes[name] ?? null };
}

/** Returns the result of a line that has failed, in the form of its API. */
function failedLine({ form, route }: LineApi, id: string | null, requestId: string, error: RelayError): LineResult {
  return { text: form.failed(id, requestId, error, route?.errorForm ?? form.noApi), outcome: 'errored' };
}

function noApi(): RelayError {
  return new RelayError('not_found', 'this service no longer has the API of the batch');
}

/** Submits the job of a line. Returns the result of a line that is refused. */
async function submitLine(parts: LineParts, order: LineOrder): Promise<LineResult | null> {
  const { primary, features, documents, onDefect } = parts;
  const { batch, client, caller, jobId } = order;
  const api = lineApi(order.api, parts);
  const requestId = randomUUID();
  const customId = api.form.customIdIn(order.line.id);
  let line: OfflineRequest | null = null;
  try {
    if (api.route === null) throw noApi();
    const bytes = await bytesOf(parts, order);
    const sender = { client, bytes: bytes.length };
    const fill: FillFiles = (body, forms) => fillFiles(features.readFiles, body, forms, sender);
    line = await api.route.parse(await api.form.bodyIn(bytes, api.name), fill);
    const { parsed, repeated, isLegacyCall = false } = line;
    if (parsed.job.stream) throw invalid('stream', 'must not be true in a batch');
    const header = (name: string) => (name === noFallback && caller.refusesFallback ? '1' : undefined);
    const source = { locals: { requestId, trace: null, client, groups: caller.groups }, req: { get: header } };
    const job = await requestOf({ ...parsed.job, stream: true }, { primary, documents }, source);
    const { forms: tools, ignored, droppedTools } = parsed;
    const named = { customId: customId ?? '', ignored, isLegacyCall, batch };
    const form = { route: api.name, model: parsed.model, tools, isStructured: job.schema !== null, line: named };
    if (droppedTools.length > 0) primary.call('toolsIgnored', { client, route: api.name }).catch(() => {});
    await jobCalls(primary).call('accept', { id: jobId, job, form: { ...form, ...(repeated && { repeated }) } });
    return null;
  } catch (thrown) {
    if (isTemporary(thrown)) throw thrown;
    if (isDefect(thrown)) onDefect(thrown);
    const error = toRelayError(line === null ? thrown : inWordsOf(line.parsed, thrown));
    return failedLine(api, customId, requestId, error);
  }
}

const [lineFeed] = Buffer.from('\n');
const byteOrderMark = Buffer.from('\ufeff');

/** Reads a line from its file, without its end. Rejects with `validation_error` if it cannot be a request. */
async function bytesOf(
  { fileCalls, limitBytes }: LineParts,
  { client, file, line: { start, end }, hasRoom }: LineOrder,
): Promise<Buffer> {
  if (!hasRoom) throw new RelayError('payload_too_large', noRoomForResult);
  if (end - start > limitBytes + 1) throw invalid('line', faults.tooLong);
  const pieces: Buffer[] = [];
  try {
    for await (const piece of filePieces(fileCalls, file, client, { start, end })) pieces.push(piece);
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

/** Returns the result of a line whose job has ended, with places for the text of the answer. */
function writeLine(
  parts: LineParts,
  { api: name, job, answer, cause }: RequestOf<typeof workerCalls, 'writeLine'>,
): WrittenLine {
  const api = lineApi(name, parts);
  const { form, route } = api;
  const { customId = '', ignored = [] } = formOf(job).line ?? {};
  const { requestId, failure } = job;
  if (job.status === 'cancelled' && cause !== null) return { frame: [form.ended(customId, cause)], outcome: cause };
  const failed = (error: RelayError): WrittenLine => {
    const { text, outcome } = failedLine(api, customId, requestId, error);
    return { frame: [text], outcome };
  };
  if (answer === null)
    return failed(failure === null ? new RelayError('forbidden', 'the job was cancelled') : fromWire(failure));
  if (route === null) return failed(noApi());
  const write = route.answerOf(job);
  const frame = storedFrame(job, answer, (whole) =>
    form.answered(customId, { requestId, body: stringifyExactly(write(whole)), ignored }),
  );
  return { frame, outcome: 'succeeded' };
}
