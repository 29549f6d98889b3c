import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ModelCapabilities, ModelEntry } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import { readBody } from '../http/body.js';
import type { BodyMemory } from '../http/body-memory.js';
import type { AsyncHandler, Handler, Primary } from '../http/exchange.js';
import { sendJson, sendTyped } from '../http/responses.js';
import { askedModel } from '../jobs/message-parts.js';

/** What Ollama's clients ask about models, and about the server. */

/** The release of Ollama whose API this is. Clients ask for the least one that they can use. */
const ollamaVersion = '0.33.0';

export const getOllamaVersion: Handler = (_req, res) => sendJson(res, { version: ollamaVersion });

/** What clients send to find out whether there is an Ollama. */
export const ollamaIsRunning: Handler = (_req, res) => sendTyped(res, 'text/plain; charset=utf-8', 'Ollama is running');

export function getTags(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { models } = await primary.call('models', {});
    sendJson(res, { models: sorted(models).map(tagOf) });
  };
}

/** No model is loaded or unloaded here: all are ready. */
export function getRunningModels(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { models } = await primary.call('models', {});
    const running = sorted(models).map((model) => ({ ...tagOf(model), expires_at: never, size_vram: 0 }));
    sendJson(res, { models: running });
  };
}

/** The default model first. */
function sorted(models: readonly ModelEntry[]): ModelEntry[] {
  return models.toSorted((a, b) => Number(b.default) - Number(a.default));
}

/** Not known. */
const modifiedAt = '1970-01-01T00:00:00Z';
const never = '2200-01-01T00:00:00Z';
const architecture = 'prompt-relay';

const details = {
  parent_model: '',
  format: '',
  family: architecture,
  families: [architecture],
  parameter_size: '',
  quantization_level: '',
};

/** There is no file: its digest is that of the name, and its size the length of the name. */
function tagOf({ id }: ModelEntry): object {
  const digest = createHash('sha256').update(id).digest('hex');
  return { name: id, model: id, modified_at: modifiedAt, size: Buffer.byteLength(id), digest, details };
}

/** Older clients send a `name`. */
export const showRequest = z.looseObject({ model: askedModel.optional(), name: askedModel.optional() });

export function postShow(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, bodies, showRequest, 'any type');
    const name = body.model ?? body.name;
    if (name === undefined) throw new RelayError('validation_error', 'model: must be sent');
    const model = await listedModel(primary, await resolvedName(primary, name));
    sendJson(res, {
      modelfile: '',
      parameters: '',
      template: '',
      details,
      model_info: { 'general.architecture': architecture, 'general.basename': model.id },
      capabilities: ['completion', ...wordsFor(model.capabilities)],
      modified_at: modifiedAt,
    });
  };
}

function wordsFor(can: Partial<ModelCapabilities> = {}): string[] {
  const words = { tools: can.tools !== undefined, vision: can.images === true, thinking: can.thinking === true };
  return Object.entries(words).flatMap(([word, isThere]) => (isThere ? [word] : []));
}

/** The model with this name. Rejects with `not_found`. */
export async function listedModel(primary: Primary, name: string): Promise<ModelEntry> {
  const { model } = await primary.call('model', { name });
  if (model !== null) return model;
  const details = [{ path: 'model', message: 'no such model' }];
  throw new RelayError('not_found', `model '${name}' not found: GET /api/tags lists those that are there`, { details });
}

const usualTag = ':latest';

/** Clients add a tag to a name without one. A model that is called so keeps its name. */
export async function resolvedName(primary: Primary, name: string): Promise<string> {
  if (!name.endsWith(usualTag)) return name;
  const { model } = await primary.call('model', { name });
  return model === null ? name.slice(0, -usualTag.length) : name;
}

const absentHere = new Set(['blobs', 'copy', 'create', 'delete', 'embed', 'embeddings', 'pull', 'push']);
const present = 'POST /api/chat, /api/generate and /api/show, and GET /api/tags, /api/ps and /api/version';

/** For a path below /api that is not there. Express has taken the /api from it. */
export const noSuchOllamaPath: Handler = ({ path }) => {
  const [, name = ''] = path.split('/');
  const what = absentHere.has(name)
    ? `this service has no ${name}: its models are those of its model CLIs`
    : 'no such path';
  throw new RelayError('not_found', `${what}; there are ${present}`);
};
