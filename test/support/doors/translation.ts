import type { z } from 'zod';
import { promptBlocks } from '../../../src/features/acp/session.js';
import { fileForms } from '../../../src/features/anthropic/attachments.js';
import { messagesBody } from '../../../src/features/anthropic/foreign-messages.js';
import { parseCountedMessages, parseMessages } from '../../../src/features/anthropic/messages-request.js';
import { LineScanner } from '../../../src/features/batches/line-scanner.js';
import { messageBatchRequest } from '../../../src/features/batches/message-routes.js';
import { openAiLines } from '../../../src/features/batches/openai-lines.js';
import { batchCreateRequest } from '../../../src/features/batches/openai-routes.js';
import { strictSchema } from '../../../src/features/codex/adapter.js';
import { itemsOf } from '../../../src/features/codex/input.js';
import { demoAdapter } from '../../../src/features/demo/adapter.js';
import { withoutTools } from '../../../src/features/doors/calls-as-text.js';
import { emulated } from '../../../src/features/doors/emulated-tools.js';
import { FormParts } from '../../../src/features/files/form-parts.js';
import { LineCounter } from '../../../src/features/files/line-counter.js';
import { makeKeyRequest } from '../../../src/features/keys-api/bodies.js';
import { message } from '../../../src/features/mcp/messages.js';
import { ollamaChatRequest, parseOllamaChat } from '../../../src/features/ollama/chat-request.js';
import { ollamaGenerateRequest, parseOllamaGenerate } from '../../../src/features/ollama/generate-request.js';
import { chatFiles, parseChat } from '../../../src/features/openai/chat-request.js';
import { completionRequest, parseCompletion } from '../../../src/features/openai/completions.js';
import { chatBody } from '../../../src/features/openai/foreign-chat.js';
import { responsesBody } from '../../../src/features/openai/foreign-responses.js';
import { bytesOfMessages } from '../../../src/features/openai/message-sizes.js';
import { offlineRoutes } from '../../../src/features/openai/offline.js';
import { responseFiles } from '../../../src/features/openai/responses-input.js';
import { repeatedOf } from '../../../src/features/openai/responses-repeated.js';
import { parseResponses } from '../../../src/features/openai/responses-request.js';
import { ClaudeWriter } from '../../../src/primary/cli/adapters/claude/writer.js';
import { promptOf } from '../../../src/primary/cli/adapters/common/transcript.js';
import { isDocument, type Turn } from '../../../src/primary/cli/contract/adapter.js';
import { replayable } from '../../../src/primary/cli/process/replay.js';
import { withoutEcho } from '../../../src/primary/jobs/echo.js';
import { askRequest } from '../../../src/shared/api/ask.js';
import { chatRequest } from '../../../src/shared/api/chat.js';
import { RelayError } from '../../../src/shared/errors.js';
import { Inbox, Outbox, type PeerMessage } from '../../../src/shared/ipc/packets.js';
import { type JobRequest, jobRequest } from '../../../src/shared/job.js';
import { IdSet } from '../../../src/shared/text/id-set.js';
import { sampleForTokens } from '../../../src/shared/text/token-sample.js';
import { messageTexts, requestBytes } from '../../../src/shared/text/turns.js';
import { readJsonBytes } from '../../../src/worker/http/body.js';
import { type FileForms, fillFiles } from '../../../src/worker/jobs/file-references.js';
import { type ParsedRequest, requestOf } from '../../../src/worker/jobs/job-request.js';
import { FakePrimary } from '../jobs/fake-primary.js';
import { readingFiles } from './no-features.js';

/** Parses a body of one API. Returns null for a body that asks for no job. */
type Parse = (bytes: Buffer) => Promise<ParsedRequest['job'] | null>;

function parser<T extends object>(
  schema: z.ZodType<T>,
  parse: (body: T) => Pick<ParsedRequest, 'job'> | null,
  forms: FileForms = {},
): Parse {
  return async (bytes) => {
    const body = await readJsonBytes(bytes, schema);
    await fillFiles(readFiles, body, forms, { client: 'key a', bytes: bytes.length });
    return parse(body)?.job ?? null;
  };
}

const { readFiles } = readingFiles(new FakePrimary({}).asPrimary, Infinity);

const native = { operation: 'ask', isEffortNeeded: true, stream: false } as const;

const parsers: Readonly<Record<string, Parse>> = {
  '/v1/chat/completions': parser(chatBody, parseChat, chatFiles),
  '/v1/completions': parser(completionRequest, parseCompletion),
  '/v1/responses': parser(
    responsesBody,
    (body) => {
      repeatedOf(body);
      return parseResponses(body);
    },
    responseFiles,
  ),
  '/v1/messages': parser(
    messagesBody,
    (body) => {
      parseCountedMessages(body);
      return parseMessages(body);
    },
    fileForms,
  ),
  '/api/chat': parser(ollamaChatRequest, parseOllamaChat),
  '/api/generate': parser(ollamaGenerateRequest, parseOllamaGenerate),
  '/mcp': parser(message, () => null),
  '/ask': parser(askRequest, ({ prompt: text, schema: value }) => ({
    job: { ...native, text, schema: value && { path: 'schema', value } },
  })),
  '/chat': parser(chatRequest, ({ message: text }) => ({ job: { ...native, text } })),
  '/keys': parser(makeKeyRequest, () => null),
  '/v1/batches': parser(batchCreateRequest, () => null),
  '/v1/messages/batches': parser(messageBatchRequest, ({ requests }) => {
    for (const request of requests) JSON.stringify(request);
    return null;
  }),
  'a line of a batch': async (bytes) => {
    const route = '/v1/chat/completions';
    const body = await openAiLines.bodyIn(bytes, route);
    return (await offlineRoutes[route].parse(body, async () => {})).parsed.job;
  },
  '/v1/files': async (bytes) => {
    readFile(bytes);
    return null;
  },
};

/** Reads the bytes of a file, which are those of a form, too. */
function readFile(bytes: Buffer): void {
  new LineCounter().addBytes(bytes);
  const form = new FormParts('edge', 17);
  form.addPiece(bytes);
  const [scanner, ids] = [new LineScanner(), new IdSet()];
  ids.add(form.extendedName ?? '');
  for (const { id } of [...scanner.scan(bytes), scanner.last()].filter((line) => line !== null)) ids.add(id ?? '');
}

const source = {
  locals: { requestId: 'r', trace: null, client: 'key a' as const, groups: [] },
  req: { get: () => undefined },
};
const primary = new FakePrimary({ schemaFault: { fault: null }, toolFault: { wrong: null } }).asPrimary;
const parts = { primary, documents: { inspectJob: async <Job>(job: Job) => job } };

/**
 * Does the work that a body causes in a worker, on the channel and in the primary, without HTTP and without a model. A
 * refused body causes only a part of it. Resolves with the length of the job's request as JSON; 0 if there is no job.
 */
export async function translate(path: string, body: string): Promise<number> {
  const parse = parsers[path];
  if (parse === undefined) throw new Error(`no API is at ${path}`);
  try {
    const job = await parse(Buffer.from(body));
    if (job === null) return 0;
    const request = await requestOf(job, parts, source);
    await workInPrimary(jobRequest.parse(await overChannel(request)));
    return JSON.stringify(request).length;
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    return 0;
  }
}

/** Sends a request over the channel of a cluster. */
async function overChannel(request: JobRequest): Promise<unknown> {
  const inbox = new Inbox();
  const received = await new Promise<PeerMessage>((resolve, reject) => {
    const outbox = new Outbox(
      (packet, done) => {
        const [whole] = inbox.read(JSON.parse(JSON.stringify(packet)));
        if (whole !== undefined) resolve(whole);
        done(null);
      },
      (_, cause) => reject(cause),
      reject,
    );
    outbox.send({ kind: 'call', id: 1, name: 'run', request });
  });
  return received.kind === 'call' ? received.request : null;
}

const demoWriter = demoAdapter(['demo'])
  .learn(async () => ({ stdout: '', stderr: '', code: 0 }))
  .then(({ protocol }) => protocol().writer);

/** Counts the request, and writes it for each kind of program. */
async function workInPrimary(request: JobRequest): Promise<void> {
  const { text, images, results, offer, history, model, system, schema } = request;
  const options = { ...(results && { results }), ...(offer && { offer }) };
  const turn: Turn = replayable({ text, images, history, model, system, schema, effort: null, ...options });
  requestBytes(request);
  bytesOfMessages(history);
  sampleForTokens(history.flatMap(messageTexts));
  withoutEcho('a line of stderr\n', history.flatMap(messageTexts));
  new ClaudeWriter(new Set(['system', 'schema', 'model', 'effort', 'tools'])).write(turn, 1);
  (await demoWriter).write(turn, 1);
  if ([{ images }, ...history].some((message) => message.images?.some(isDocument))) return; // others get its text
  JSON.stringify(history.flatMap(itemsOf));
  if (schema !== null) strictSchema(schema);
  promptBlocks(turn, true);
  promptOf(withoutTools(turn));
  if (offer !== undefined) emulated(turn, offer, schema);
}
