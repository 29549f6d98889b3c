import type { Request } from 'express';
import { type AskRequest, type AskResult, askRequest, usageOf } from '../../shared/api/ask.js';
import { type ChatRequest, type ChatResult, chatRequest } from '../../shared/api/chat.js';
import { timestamp } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { invalid, type RelayError } from '../../shared/errors.js';
import { withFields } from '../../shared/features/feature.js';
import type { WaitReason } from '../../shared/job.js';
import { binaryTypes, documentTable } from '../../shared/tables/document-types.js';
import { readBody } from '../http/body.js';
import { eventText } from '../http/event-stream.js';
import type { AsyncHandler, Reply } from '../http/exchange.js';
import { errorBodyOf } from '../http/responses.js';
import {
  type AnswerFormat,
  type CompletedAnswer,
  type StreamFormat,
  ThoughtPieces,
  thoughtText,
  type WrittenEvent,
} from '../jobs/answer-format.js';
import { documentOf, textDocument } from '../jobs/documents.js';
import { type FileForm, type FileForms, fillFiles, senderOf } from '../jobs/file-references.js';
import { ownRequest, type RequestedJob } from '../jobs/job-request.js';
import { imageOf, messageOf, type ShownPart } from '../jobs/message-parts.js';
import { answerWithJob, type JobParts } from '../jobs/run-job.js';

/** Returns how an object in `images` or `files` refers to a file. A name that the client has sent is used. */
function fileForm(isDocument: boolean): FileForm {
  return {
    isDocument,
    path: '',
    field: 'data',
    referenceIn: (sent) => (sent.file_id === undefined ? null : sent),
    fill: (sent, { name, mediaType, data }) => Object.assign(sent, { name, ...sent, media_type: mediaType, data }),
  };
}

const fileForms: FileForms = { images: fileForm(false), files: fileForm(true) };

export function postAsk(parts: JobParts): AsyncHandler {
  const { fields } = parts.features;
  const schema = withFields<AskRequest>(askRequest, fields);
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, schema);
    await fillFiles(parts.features.readFiles, body, fileForms, senderOf(res));
    const job = {
      operation: 'ask',
      text: body.prompt,
      ...commonFields(req, body),
      ...featureFields(body, fields),
    } as const;
    await answer(parts, res, job);
  };
}

export function postChat(parts: JobParts): AsyncHandler {
  const { fields } = parts.features;
  const schema = withFields<ChatRequest>(chatRequest, fields);
  return async (req, res) => {
    const body = await readBody(req, res, parts.bodies, schema);
    await fillFiles(parts.features.readFiles, body, fileForms, senderOf(res));
    const { message: text, conversation_id: conversationId, version_of: versionOf } = body;
    const job = {
      operation: 'chat',
      conversationId,
      versionOf,
      text,
      ...commonFields(req, body),
      ...featureFields(body, fields),
    } as const;
    await answer(parts, res, job);
  };
}

/** Returns the values of the fields that belong to features. */
function featureFields(body: object, fields: Readonly<Record<string, unknown>>) {
  return { featureFields: Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(fields, name))) };
}

/** Translates the fields that POST /ask and POST /chat share. */
function commonFields(req: Request, body: Omit<AskRequest, 'prompt'>) {
  const { system, model, effort, thoughts } = body;
  return {
    system,
    model,
    images: messageOf('user', [...imagesIn(body), ...documentsIn(body)]).images,
    schema: body.schema && { path: 'schema', value: body.schema },
    effort,
    isEffortNeeded: true,
    thinking: thoughts === true ? ('summarized' as const) : undefined,
    stream: wantsStream(req, body.stream),
  };
}

/**
 * Returns the images of a request. The schema has already checked those with data, and a check takes 70 ms for 12 MB.
 * Throws `validation_error` for an uploaded file that is no image.
 */
function imagesIn({ images = [] }: Pick<AskRequest, 'images'>): ShownPart[] {
  return images.map(({ media_type: mediaType, data = '', file_id: id }, index) => {
    if (mediaType !== undefined && id === undefined) return { type: 'image', mediaType, data };
    return imageOf(mediaType ?? '', data, `images.${index}.file_id`);
  });
}

/** Returns the documents of a request. Throws `validation_error`. */
function documentsIn({ files = [] }: Pick<AskRequest, 'files'>): ShownPart[] {
  return files.map(({ name, media_type: mediaType, data, text, file_id: id }, index) => {
    const at = `files.${index}`;
    const binary = binaryTypes.find((type) => mediaType?.startsWith(type));
    if (text !== undefined && binary !== undefined)
      throw invalid(`${at}.text`, `must not be sent for a ${documentTable[binary].name}: send its data`);
    const path = `${at}.${id === undefined ? 'data' : 'file_id'}`;
    const document =
      text === undefined
        ? documentOf(mediaType ?? 'application/pdf', data ?? '', path, name)
        : textDocument(text, `${at}.text`, name);
    return { type: 'document', ...document };
  });
}

async function answer(parts: JobParts, res: Reply, job: RequestedJob): Promise<void> {
  const route = `/${job.operation}` as const;
  if (await parts.features.leaveJob?.(parts, res, job, route)) return;
  await answerWithJob(parts, res, ownRequest(job), ownFormats[route]);
}

export function wantsStream(req: Request, stream: boolean | undefined): boolean {
  return stream ?? req.accepts(['application/json', 'text/event-stream']) === 'text/event-stream';
}

/** Answer formats of the native API. The last event of a stream has the body of a plain answer. */
export const ownFormats = {
  '/ask': ownFormat(askResultOf),
  '/chat': ownFormat(chatResultOf),
} as const;

export function ownFormat(bodyOf: (answer: CompletedAnswer) => object): AnswerFormat {
  return {
    isForSdks: false,
    body: bodyOf,
    stream: ({ requestId }) => new OwnStream(bodyOf, requestId),
  };
}

/** Stream with one event for each change of the job. */
export class OwnStream implements StreamFormat {
  readonly #bodyOf: (answer: CompletedAnswer) => object;
  readonly #requestId: string;
  readonly #thoughts = new ThoughtPieces();

  constructor(bodyOf: (answer: CompletedAnswer) => object, requestId: string) {
    this.#bodyOf = bodyOf;
    this.#requestId = requestId;
  }

  formatBeginning(): string {
    return '';
  }

  formatPosition(position: number, reason: WaitReason): string {
    return eventText('queued', { position, reason });
  }

  formatStart(queueMs: number): string {
    return eventText('started', { queue_ms: queueMs });
  }

  /** Formats text and thoughts: the native API has no tools. */
  formatEvent(event: WrittenEvent): string {
    if (event.type === 'text-delta') return eventText('delta', { text: event.text });
    if (event.type === 'thought-delta') return eventText('thought', { text: this.thoughtPiece(event.text) });
    if (event.type === 'thought-end') this.#thoughts.endThought();
    return '';
  }

  /** Returns the piece as the client gets it: thoughts are separated by a blank line. */
  protected thoughtPiece(text: string): string {
    return this.#thoughts.addText(text);
  }

  formatEnd(answer: CompletedAnswer): string {
    return eventText('done', this.#bodyOf(answer));
  }

  formatFailure(error: RelayError): string {
    return eventText('error', errorBodyOf(error, this.#requestId));
  }
}

function askResultOf(answer: CompletedAnswer): AskResult {
  const { text, end, requestId } = answer;
  return {
    success: true,
    response: text,
    ...optionalFields(answer),
    model: end.model,
    usage: usageOf(end.usage),
    queue_ms: end.queueMs,
    duration_ms: end.executionMs,
    request_id: requestId,
  };
}

function chatResultOf(answer: CompletedAnswer): ChatResult {
  const { text, end, requestId } = answer;
  if (end.conversation === null) throw new Error('a chat ended without its conversation');
  return {
    success: true,
    conversation_id: end.conversation.id,
    response: text,
    ...optionalFields(answer),
    message: { role: 'assistant', content: text },
    model: end.model,
    usage: usageOf(end.usage),
    queue_ms: end.queueMs,
    duration_ms: end.executionMs,
    ...figuresOf(end.conversation),
    request_id: requestId,
  };
}

/** Returns the fields that only some answers have. */
function optionalFields({ value, end, parts }: CompletedAnswer): Pick<AskResult, OptionalField> {
  const thoughts = thoughtText(parts);
  return {
    ...(value !== undefined && { structured: value as unknown as Record<string, unknown> }),
    ...(end.isCutShort && { incomplete: true as const }),
    ...(thoughts !== '' && { thoughts }),
    ...(end.fallback && { fallback: [...end.fallback] }),
  };
}

type OptionalField = 'structured' | 'incomplete' | 'thoughts' | 'fallback';

/** Returns the figures of a conversation, as answers have them. */
export function figuresOf(snapshot: ConversationSnapshot) {
  return {
    message_count: snapshot.messageCount,
    tokens_used: snapshot.tokensUsed,
    last_activity_at: timestamp(snapshot.lastActivityAt),
    expires_at: timestamp(snapshot.expiresAt),
  };
}
