import { leadingImages } from '../../shared/api/ask.js';
import { type ChatResult, type ConversationBody, chatRequest, type DeletedBody } from '../../shared/api/chat.js';
import { timestamp } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { acceptJob, prefersAsync } from '../background/accept.js';
import { readBody } from '../http/body.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/send-json.js';
import type { Answer, JobParts } from '../jobs/running-job.js';
import { answerWithJob, orderedSchema, structuredOf, usageOf, wantsStream } from './job.js';

export function postChat(parts: JobParts): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, chatRequest);
    const { message: text, conversation_id: conversationId, system, model, effort } = body;
    const beside = { images: leadingImages(body.images), schema: orderedSchema(body.schema), effort };
    const said = { operation: 'chat', conversationId, text, system, model, ...beside, isEffortNeeded: true } as const;
    const order = { ...said, stream: wantsStream(req, body.stream) };
    if (prefersAsync(req)) return acceptJob(parts.primary, res, order, { route: '/chat', model: null, tool: null });
    await answerWithJob(parts, res, order, chatResultOf);
  };
}

export function getConversation(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const snapshot = await primary.call('conversation', { id: idOf(req.params), client });
    sendJson(res, conversationBodyOf(snapshot, requestId));
  };
}

export function deleteConversation(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { client, requestId } = res.locals;
    const id = idOf(req.params);
    await primary.call('deleteConversation', { id, client });
    const body: DeletedBody = { success: true, conversation_id: id, deleted: true, request_id: requestId };
    sendJson(res, body);
  };
}

export function conversationBodyOf(snapshot: ConversationSnapshot, requestId: string): ConversationBody {
  return {
    success: true,
    conversation_id: snapshot.id,
    status: 'active',
    created_at: timestamp(snapshot.createdAt),
    ...figuresOf(snapshot),
    request_id: requestId,
  };
}

export function idOf(params: Readonly<Record<string, string | string[]>>): string {
  return String(params.conversation_id);
}

export function figuresOf(snapshot: ConversationSnapshot) {
  return {
    message_count: snapshot.messageCount,
    tokens_used: snapshot.tokensUsed,
    last_activity_at: timestamp(snapshot.lastActivityAt),
    expires_at: timestamp(snapshot.expiresAt),
  };
}

export function chatResultOf(answer: Answer, requestId: string): ChatResult {
  const { text, end } = answer;
  if (end.conversation === null) throw new Error('a chat ended without its conversation');
  return {
    success: true,
    conversation_id: end.conversation.id,
    response: text,
    ...structuredOf(answer),
    message: { role: 'assistant', content: text },
    model: end.model,
    usage: usageOf(end.usage),
    queue_ms: end.queueMs,
    duration_ms: end.executionMs,
    ...figuresOf(end.conversation),
    request_id: requestId,
  };
}
