import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ModelCapabilities, ModelEntry } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import { readBody } from '../../worker/http/body.js';
import type { BodyMemory } from '../../worker/http/body-memory.js';
import type { AsyncHandler, Handler, Primary } from '../../worker/http/exchange.js';
import { sendJson, sendTyped } from '../../worker/http/responses.js';
import { ignoredFields, setIgnored } from '../../worker/jobs/job-request.js';
import { askedModel } from '../doors/messages.js';
import { fieldsOf } from '../doors/request-fields.js';

/** Routes of Ollama's API for models and the version. */

/** Release of Ollama with the same API. Clients check that it is not too old. */
const ollamaVersion = '0.33.0';

export const getOllamaVersion: Handler = (_req, res) => sendJson(res, { version: ollamaVersion });

/** Answers the request by which clients detect Ollama. */
export const ollamaIsRunning: Handler = (_req, res) => sendTyped(res, 'text/plain; charset=utf-8', 'Ollama is running');

export function getTags(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { models } = await primary.call('models', {});
    sendJson(res, { models: sorted(models).map(tagOf) });
  };
}

/** Lists all models as running, because none has to be loaded. */
export function getRunningModels(primary: Primary): AsyncHandler {
  return async (_req, res) => {
    const { models } = await primary.call('models', {});
    const running = sorted(models).map((model) => ({ ...tagOf(model), expires_at: never, size_vram: 0 }));
    sendJson(res, { models: running });
  };
}

/** Sorts the default model first. */
function sorted(models: readonly ModelEntry[]): ModelEntry[] {
  return models.toSorted((a, b) => Number(b.default) - Number(a.default));
}

/** Placeholder, because the date of a model is unknown. */
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

/**
 * Returns the entry of a model. Model CLIs have no model file: the digest is that of the name, and the size is its
 * length.
 */
function tagOf({ id }: ModelEntry): object {
  const digest = createHash('sha256').update(id).digest('hex');
  return { name: id, model: id, modified_at: modifiedAt, size: Buffer.byteLength(id), digest, details };
}

/** Body of POST /api/show. Older clients send `name`. */
export const showRequest = z.looseObject({ model: askedModel.optional(), name: askedModel.optional() });

const knownOfShow = fieldsOf(showRequest);

export function postShow(primary: Primary, bodies: BodyMemory): AsyncHandler {
  return async (req, res) => {
    const body = await readBody(req, res, bodies, showRequest, 'any type');
    const name = body.model ?? body.name;
    setIgnored(res, ignoredFields(body, knownOfShow));
    if (name === undefined) throw new RelayError('validation_error', 'model: must be sent');
    const model = await listedModel(primary, await resolvedName(primary, name));
    sendJson(res, {
      modelfile: '',
      parameters: '',
      template: '',
      details,
      model_info: {
        'general.architecture': architecture,
        'general.basename': model.id,
        ...(model.max_input_tokens !== undefined && { [`${architecture}.context_length`]: model.max_input_tokens }),
      },
      capabilities: ['completion', ...capabilitiesOf(model.capabilities)],
      modified_at: modifiedAt,
    });
  };
}

function capabilitiesOf(can: Partial<ModelCapabilities> = {}): string[] {
  const support = { tools: can.tools !== undefined, vision: can.images === true, thinking: can.thinking === true };
  return Object.entries(support).flatMap(([name, isSupported]) => (isSupported ? [name] : []));
}

/** Returns the model with this name. Rejects with `not_found`. */
export async function listedModel(primary: Primary, name: string): Promise<ModelEntry> {
  const { model } = await primary.call('model', { name });
  if (model !== null) return model;
  const details = [{ path: 'model', message: 'no such model' }];
  throw new RelayError('not_found', `model '${name}' not found: GET /api/tags lists the models`, { details });
}

const defaultTag = ':latest';

/** Removes the tag that clients add to the names of models, which are separated by commas. */
export async function resolvedName(primary: Primary, names: string): Promise<string> {
  return (await Promise.all(names.split(',').map((name) => withoutTag(primary, name)))).join(',');
}

/** Removes the tag, unless a model has this exact name. */
async function withoutTag(primary: Primary, name: string): Promise<string> {
  if (!name.endsWith(defaultTag)) return name;
  const { model } = await primary.call('model', { name });
  return model === null ? name.slice(0, -defaultTag.length) : name;
}

const unsupportedResources = new Set(['blobs', 'copy', 'create', 'delete', 'embed', 'embeddings', 'pull', 'push']);
const supportedEndpoints = 'POST /api/chat, /api/generate and /api/show, and GET /api/tags, /api/ps and /api/version';

/** Answers an unknown path below /api. Express has already removed /api from it. */
export const noSuchOllamaPath: Handler = ({ path }) => {
  const [, name = ''] = path.split('/');
  const what = unsupportedResources.has(name)
    ? `this service has no ${name}: its models come from its model CLIs`
    : 'no such path';
  throw new RelayError('not_found', `${what}; there are ${supportedEndpoints}`);
};
