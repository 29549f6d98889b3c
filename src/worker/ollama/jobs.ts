import type { Request } from 'express';
import type { z } from 'zod';
import { readBody } from '../http/body.js';
import type { AsyncHandler, Reply } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import type { ParsedRequest } from '../jobs/job-request.js';
import { type AnswerFormat, answerWithJob, type JobParts } from '../jobs/run-job.js';
import { loadedBody, ollamaChatFormat, ollamaGenerateFormat } from './answer.js';
import { ollamaChatRequest, parseOllamaChat } from './chat-request.js';
import { ollamaGenerateRequest, parseOllamaGenerate } from './generate-request.js';
import { listedModel, resolvedName } from './models.js';

/** The two endpoints that run a model. */

export function postOllamaChat(parts: JobParts): AsyncHandler {
  const answer = answering(parts, 'chat', ollamaChatFormat(parts.clock));
  return async (req, res) => answer(res, await bodyOf(req, res, parts, ollamaChatRequest), parseOllamaChat);
}

export function postOllamaGenerate(parts: JobParts): AsyncHandler {
  const answer = answering(parts, 'generate', ollamaGenerateFormat(parts.clock));
  return async (req, res) => answer(res, await bodyOf(req, res, parts, ollamaGenerateRequest), parseOllamaGenerate);
}

/** Clients such as curl say nothing of the type of their body, or the type of a form. */
async function bodyOf<T extends { readonly model: string }>(
  req: Request,
  res: Reply,
  { bodies, primary }: JobParts,
  schema: z.ZodType<T>,
): Promise<T> {
  const body = await readBody(req, res, bodies, schema, 'any type');
  return { ...body, model: await resolvedName(primary, body.model) };
}

interface LoadRequest {
  readonly model: string;
  readonly keep_alive?: unknown;
}

/** Answers with a job; a request that says nothing to the model is answered at once. */
function answering(parts: JobParts, endpoint: 'chat' | 'generate', format: AnswerFormat) {
  return async <T extends LoadRequest>(res: Reply, body: T, parse: (body: T) => ParsedRequest | null) => {
    const parsed = parse(body);
    if (parsed !== null) return answerWithJob(parts, res, parsed, format);
    const { id } = await listedModel(parts.primary, body.model);
    const isUnload = body.keep_alive === 0 || /^0[a-z]*$/.test(String(body.keep_alive));
    sendJson(res, loadedBody(endpoint, id, isUnload, parts.clock));
  };
}
