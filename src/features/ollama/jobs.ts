import type { Request } from 'express';
import type { z } from 'zod';
import { readBody } from '../../worker/http/body.js';
import type { AsyncHandler, Reply } from '../../worker/http/exchange.js';
import { sendJson } from '../../worker/http/responses.js';
import type { AnswerFormat } from '../../worker/jobs/answer-format.js';
import type { ParsedRequest } from '../../worker/jobs/job-request.js';
import { answerWithJob, type JobParts } from '../../worker/jobs/run-job.js';
import { loadedBody, ollamaChatFormat, ollamaGenerateFormat } from './answer.js';
import { ollamaChatRequest, parseOllamaChat } from './chat-request.js';
import { ollamaGenerateRequest, parseOllamaGenerate } from './generate-request.js';
import { listedModel, resolvedName } from './models.js';

/** Endpoints of Ollama's API that run a model. */

export function postOllamaChat(parts: JobParts): AsyncHandler {
  const answer = answering(parts, 'chat', ollamaChatFormat(parts.clock));
  return async (req, res) => answer(res, await bodyOf(req, res, parts, ollamaChatRequest), parseOllamaChat);
}

export function postOllamaGenerate(parts: JobParts): AsyncHandler {
  const answer = answering(parts, 'generate', ollamaGenerateFormat(parts.clock));
  return async (req, res) => answer(res, await bodyOf(req, res, parts, ollamaGenerateRequest), parseOllamaGenerate);
}

/** Reads the body. Any content type is accepted, because clients such as curl send none or that of a form. */
async function bodyOf<T extends Pick<LoadRequest, 'model'>>(
  req: Request,
  res: Reply,
  { bodies, primary }: JobParts,
  schema: z.ZodType<T>,
): Promise<T> {
  const body = await readBody(req, res, bodies, schema, 'any type');
  return body.model ? { ...body, model: await resolvedName(primary, body.model) } : body;
}

interface LoadRequest {
  readonly model?: string | null | undefined;
  readonly keep_alive?: unknown;
}

/** Returns a function that answers with a job, or at once if the request only loads or unloads the model. */
function answering(parts: JobParts, endpoint: 'chat' | 'generate', format: AnswerFormat) {
  return async <T extends LoadRequest>(res: Reply, body: T, parse: (body: T) => ParsedRequest | null) => {
    const parsed = parse(body);
    if (parsed !== null) return answerWithJob(parts, res, parsed, format);
    const { id } = await listedModel(parts.primary, body.model || 'default');
    const isUnload = body.keep_alive === 0 || /^0[a-z]*$/.test(String(body.keep_alive));
    sendJson(res, loadedBody(endpoint, id, isUnload, parts.clock));
  };
}
