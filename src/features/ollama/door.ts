import { z } from 'zod';
import { jobErrors, readingErrors } from '../../shared/api/endpoints.js';
import type { DoorDescription } from '../../shared/features/feature.js';
import { ollamaChatRequest } from './chat-request.js';
import { ollamaGenerateRequest } from './generate-request.js';
import { showRequest } from './models.js';

/** Ollama's API in the description of the API. */

const listOfModels = z.looseObject({ models: z.array(z.looseObject({ name: z.string(), model: z.string() })) });
const answerFields = { model: z.string(), created_at: z.string(), done: z.boolean(), done_reason: z.string() };

export const door: DoorDescription = {
  section: 'For Ollama’s clients',
  error: z
    .object({ error: z.string() })
    .meta({ id: 'OllamaError', description: 'An error in the form of the Ollama API.' }),
  stream: {
    mediaType: 'application/x-ndjson',
    schema: z.string().meta({
      description:
        'A line of JSON for each piece; the last line has `done: true`, or is an `error`. Spaces before a line keep the connection open through proxies.',
    }),
  },
  endpoints: [
    {
      ...{ method: 'GET', route: '/api/tags', errors: [], isOpen: true, id: 'listOllamaModels' },
      summary: 'The models in the form of the Ollama API',
      description:
        'The models have no files: digest and size are computed from the name, and the date is a placeholder.',
      answer: listOfModels,
      answerText: 'The models.',
    },
    {
      ...{ method: 'GET', route: '/api/ps', errors: [], isOpen: true, id: 'listRunningOllamaModels' },
      summary: 'The loaded models in the form of the Ollama API',
      description: 'The response has all models, because this service does not load and unload models.',
      answer: listOfModels,
      answerText: 'The models.',
    },
    {
      ...{ method: 'GET', route: '/api/version', errors: [], isOpen: true, id: 'getOllamaVersion' },
      summary: 'The supported version of the Ollama API',
      description: 'Clients of Ollama request it before they use newer endpoints.',
      answer: z.object({ version: z.string() }),
      answerText: 'The version.',
    },
    {
      ...{ method: 'POST', route: '/api/show', errors: [...readingErrors, 'not_found'], id: 'showOllamaModel' },
      summary: 'One model in the form of the Ollama API',
      description: 'The body is JSON with any Content-Type.',
      body: { schema: showRequest, example: { model: 'default' } },
      answer: z.looseObject({ capabilities: z.array(z.string()) }),
      answerText: 'What the model can do.',
    },
    {
      ...{ method: 'POST', route: '/api/chat', errors: [...jobErrors, 'not_found'], id: 'chatAsOllama' },
      summary: 'A chat in the form of the Ollama API',
      description: 'The body is JSON with any Content-Type. The answer is streamed unless `stream` is false.',
      body: {
        schema: ollamaChatRequest,
        example: { model: 'default', messages: [{ role: 'user', content: 'Hello, my name is Ada' }] },
      },
      runsModel: true,
      answer: z.looseObject({ ...answerFields, message: z.looseObject({ role: z.string(), content: z.string() }) }),
      answerText: 'The answer.',
    },
    {
      ...{ method: 'POST', route: '/api/generate', errors: [...jobErrors, 'not_found'], id: 'generateAsOllama' },
      summary: 'An answer to a prompt in the form of the Ollama API',
      description: 'The body is JSON with any Content-Type. The answer is streamed unless `stream` is false.',
      body: { schema: ollamaGenerateRequest, example: { model: 'default', prompt: 'Hello, my name is Ada' } },
      runsModel: true,
      answer: z.looseObject({ ...answerFields, response: z.string() }),
      answerText: 'The answer.',
    },
  ],
};
