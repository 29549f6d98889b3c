import type { Request } from 'express';
import type { ModelEntry, OpenAiModel } from '../../shared/api/models.js';
import { RelayError } from '../../shared/errors.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendJson } from '../http/responses.js';
import { speaksAnthropic } from './doors.js';

/** When a model was made is not known. */
const noDate = '1970-01-01T00:00:00Z';

/** Both SDKs ask here. The default model comes first. */
export function getDoorModels(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { models } = await primary.call('models', {});
    sendJson(res, speaksAnthropic(req) ? anthropicList(sorted(models)) : openAiList(models));
  };
}

export function openAiList(models: readonly ModelEntry[]): { object: 'list'; data: OpenAiModel[] } {
  return { object: 'list', data: sorted(models).map(openAiModel) };
}

function sorted(models: readonly ModelEntry[]): ModelEntry[] {
  return models.toSorted((a, b) => Number(b.default) - Number(a.default));
}

export function getDoorModel(primary: Primary): AsyncHandler {
  return async (req, res) => {
    const { model: found } = await primary.call('model', { name: [req.params.id].flat().join('/') });
    if (found === null) throw new RelayError('not_found', 'no such model', { details: [modelDetail] });
    sendJson(res, modelIn(req, found));
  };
}

const modelDetail = { path: 'model', message: 'no such model' };

function modelIn(req: Request, model: ModelEntry): object {
  return speaksAnthropic(req) ? anthropicModel(model) : openAiModel(model);
}

function openAiModel({ id, alias_of: target }: ModelEntry): OpenAiModel {
  return {
    id,
    object: 'model',
    created: 0,
    owned_by: 'prompt-relay',
    ...(target !== undefined && { alias_of: target }),
  };
}

function anthropicModel({ id, name, alias_of: target }: ModelEntry): object {
  const model = { type: 'model', id, display_name: name, created_at: noDate };
  return target === undefined ? model : { ...model, alias_of: target };
}

function anthropicList(models: readonly ModelEntry[]): object {
  const [first, last] = [models[0], models.at(-1)];
  return {
    data: models.map(anthropicModel),
    has_more: false,
    first_id: first?.id ?? null,
    last_id: last?.id ?? null,
  };
}
