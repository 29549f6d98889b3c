import type { Request } from 'express';
import type { ConversationBody, DeletedBody } from '../../shared/api/chat.js';
import {
  type ConversationList,
  cursorQuery,
  downloadQuery,
  forkRequest,
  formatQuery,
  limitQuery,
  searchQuery,
  titleRequest,
  usualPage,
  versionOfQuery,
} from '../../shared/api/conversations.js';
import { inLine } from '../../shared/async.js';
import { timestamp } from '../../shared/clock.js';
import { type ConversationPage, decodeOrigins, type TitledConversation } from '../../shared/conversation.js';
import { ignoreFailure, RelayError } from '../../shared/errors.js';
import { figuresOf } from '../../worker/api/ask.js';
import { queryOf, readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Handler } from '../../worker/http/exchange.js';
import { sendJson, untilGone } from '../../worker/http/responses.js';
import { documentOf } from '../../worker/jobs/documents.js';
import { messageOf } from '../../worker/jobs/message-parts.js';
import type { JobParts } from '../../worker/jobs/run-job.js';
import { type ImportRequest, importRequest } from './import.js';
import type { TurnToImport } from './imported-turn.js';
import type { ConversationCalls } from './shared.js';
import {
  JsonTranscript,
  MarkdownTranscript,
  type PieceOrder,
  sendPieces,
  type TranscriptWriter,
  written,
} from './transcripts.js';

/** Refuses to return messages and titles if the operator has disabled that. */
export function readBackGuard(readBack: boolean): Handler {
  return (_req, _res, next) => {
    if (readBack) return next();
    throw new RelayError('forbidden', 'stored conversations cannot be read: MODEL_API_READ_BACK is false');
  };
}

/** Hides the titles if messages may not be read, because they may quote one. */
export function getConversation(primary: ConversationCalls, readBack: boolean): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const conversation = await primary.call('conversation', { id: idOf(req.params), client });
    const body = conversationBodyOf(conversation, requestId);
    const { open_turn: turn } = body;
    sendJson(res, readBack ? body : { ...body, title: null, open_turn: turn && { ...turn, title: null } });
  };
}

export function patchConversation(primary: ConversationCalls, jobs: Pick<JobParts, 'bodies'>): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const { title } = await readBody(req, res, jobs.bodies, titleRequest);
    const renamed = await primary.call('renameConversation', { id: idOf(req.params), client, title });
    sendJson(res, conversationBodyOf(renamed, requestId));
  };
}

export function deleteConversation(primary: ConversationCalls): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const id = idOf(req.params);
    await primary.call('deleteConversation', { id, client });
    const body: DeletedBody = { success: true, conversation_id: id, deleted: true, request_id: requestId };
    sendJson(res, body);
  };
}

function conversationBodyOf(snapshot: TitledConversation, requestId: string): ConversationBody {
  return {
    success: true,
    conversation_id: snapshot.id,
    status: 'active',
    title: snapshot.title,
    origins: originsIn(snapshot),
    open_turn: openTurnIn(snapshot),
    created_at: timestamp(snapshot.createdAt),
    ...figuresOf(snapshot),
    request_id: requestId,
  };
}

function originsIn({ origins }: TitledConversation): ConversationBody['origins'] {
  return decodeOrigins(origins).map(({ id, messageCount }) => ({ conversation_id: id, message_count: messageCount }));
}

function openTurnIn({ openTurn }: TitledConversation): ConversationBody['open_turn'] {
  if (openTurn === undefined) return null;
  const { id, status, title, isBackground } = openTurn;
  return { job_id: id, status, title, background: isBackground };
}

function idOf(params: Readonly<Record<string, string | string[]>>): string {
  return String(params.conversation_id);
}

export function getConversations(primary: ConversationCalls): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const limit = Number(queryOf(req, 'limit', limitQuery) ?? usualPage);
    const cursor = queryOf(req, 'cursor', cursorQuery);
    const before = cursor === undefined ? null : Number(cursor);
    const search = queryOf(req, 'search', searchQuery) ?? null;
    const versionOf = queryOf(req, 'version_of', versionOfQuery) ?? null;
    const order = { client, before, limit, search, versionOf };
    using caller = untilGone(res);
    for await (const page of primary.stream('conversations', order, caller.signal))
      sendJson(res, listOf(page, requestId));
  };
}

/**
 * Sends the messages of a conversation. The worker requests one piece at a time for all clients together, in turn, to
 * keep other calls fast.
 */
export function getMessages(primary: ConversationCalls): AsyncHandler {
  const line = inLine();
  return async (req, res) => {
    const { client } = res.locals;
    const id = idOf(req.params);
    const writer = writerFor(req, id, res.locals.requestId);
    const isFile = queryOf(req, 'download', downloadQuery) === 'true';
    using caller = untilGone(res);
    const read = (order: PieceOrder) => line(() => primary.call('transcript', { id, client, ...order }));
    const headers = { 'Content-Type': writer.type, ...(isFile && asFile(id, writer)) };
    await sendPieces(res, headers, written(read, writer), caller.signal);
  };
}

export function postFork(primary: ConversationCalls, jobs: Pick<JobParts, 'bodies'>): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const { from: messageCount = null } = await readBody(req, res, jobs.bodies, forkRequest);
    const snapshot = await primary.call('forkConversation', { id: idOf(req.params), client, messageCount });
    sendJson(res, conversationBodyOf(snapshot, requestId), 201);
  };
}

/**
 * Imports a conversation, turn by turn, so that no call is large. If a turn fails, the turns before it are deleted again.
 */
export function postImport({ primary, jobs }: ImportRouteParts): AsyncHandler {
  return async (req, res) => {
    const { bodies, documents } = jobs;
    const { client, requestId } = res.locals;
    const { system = null, messages } = await readBody(req, res, bodies, importRequest);
    const turns: ExportedTurn[] = [];
    for (let at = 0; at < messages.length; at += 2)
      turns.push(await documents.inspectJob(turnAt(messages, at), client));
    using caller = untilGone(res);
    const add = (turn: ExportedTurn, id: string | null) =>
      primary.call('importTurn', { id, client, system: id === null ? system : null, ...turn });
    const undo = (id: string) => primary.call('deleteConversation', { id, client }).catch(ignoreFailure);
    sendJson(res, conversationBodyOf(await importAll(turns, add, undo, caller.signal), requestId), 201);
  };
}

/** Adds the turns to a new conversation, in order. */
async function importAll(
  [first, ...others]: readonly ExportedTurn[],
  add: (turn: ExportedTurn, id: string | null) => Promise<TitledConversation>,
  undo: (id: string) => Promise<unknown>,
  signal: AbortSignal,
): Promise<TitledConversation> {
  if (first === undefined) throw new Error('a conversation has a turn');
  let imported = await add(first, null);
  try {
    for (const turn of others) {
      signal.throwIfAborted();
      imported = await add(turn, imported.id);
    }
    return imported;
  } catch (error) {
    await undo(imported.id);
    throw error;
  }
}

interface ImportRouteParts {
  readonly primary: ConversationCalls;
  readonly jobs: Pick<JobParts, 'bodies' | 'documents'>;
}

type ExportedTurn = Pick<TurnToImport, 'text' | 'images' | 'answer' | 'figures'>;

/** Returns the turn of a message of the user, and the answer after it. Throws `validation_error` for a document. */
function turnAt(messages: ImportRequest['messages'], at: number): ExportedTurn {
  const [question, answer] = messages.slice(at, at + 2);
  if (question?.role !== 'user' || answer?.role !== 'assistant') throw new Error('the messages are not in turn');
  const images = (question.images ?? []).map(({ media_type: mediaType, data }) => ({
    type: 'image' as const,
    mediaType,
    data,
  }));
  const files = (question.files ?? []).map(({ name, media_type: mediaType, data }, index) => ({
    type: 'document' as const,
    ...documentOf(mediaType, data, `messages.${at}.files.${index}.data`, name),
  }));
  const attached = messageOf('user', [...images, ...files]).images ?? [];
  return { text: question.content, images: attached, answer: answer.content, figures: turnFiguresOf(answer) };
}

type ExportedAnswer = Extract<ImportRequest['messages'][number], { role: 'assistant' }>;

function turnFiguresOf({ model, usage, interrupted, added_messages }: ExportedAnswer): TurnToImport['figures'] {
  if ([model, usage, interrupted, added_messages].every((each) => each === undefined)) return null;
  const {
    input_tokens: inputTokens = null,
    output_tokens: outputTokens = null,
    cost_usd: costUsd = null,
  } = usage ?? {};
  const additions = added_messages?.map(({ at, content: text }) => ({ at, text }));
  const marks = { ...(interrupted && { isInterrupted: interrupted }), ...(additions && { additions }) };
  return { model: model ?? null, usage: { inputTokens, outputTokens, costUsd }, ...marks };
}

function listOf({ conversations, next }: ConversationPage, requestId: string): ConversationList {
  return {
    conversations: conversations.map((snapshot) => ({
      conversation_id: snapshot.id,
      created_at: timestamp(snapshot.createdAt),
      ...figuresOf(snapshot),
      title: snapshot.title,
      origins: originsIn(snapshot),
      open_turn: openTurnIn(snapshot),
      match: snapshot.match,
    })),
    next_cursor: next === null ? null : String(next),
    request_id: requestId,
  };
}

function writerFor(req: Request, id: string, requestId: string): TranscriptWriter {
  const wanted = queryOf(req, 'format', formatQuery) ?? acceptedFormat(req);
  return wanted === 'markdown' ? new MarkdownTranscript(id) : new JsonTranscript(id, requestId);
}

function acceptedFormat(req: Request): 'json' | 'markdown' {
  return req.accepts(['application/json', 'text/markdown']) === 'text/markdown' ? 'markdown' : 'json';
}

/**
 * Returns the header of a download. The header is sent only if the conversation exists, so the id has only letters,
 * digits, `-` and `_`.
 */
function asFile(id: string, { extension }: TranscriptWriter) {
  return { 'Content-Disposition': `attachment; filename="conversation-${id}.${extension}"` };
}
