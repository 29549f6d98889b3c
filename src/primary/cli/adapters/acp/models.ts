import type { ModelEntry } from '../../contract/adapter.js';
import type { SessionMade, SessionOption } from './lines.js';

/** A request of the protocol, without its id. */
export interface AcpRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** How the agent is told the model of a session; null where it takes none. */
export function modelRequest({ sessionId, models, configOptions }: SessionMade, model: string): AcpRequest | null {
  if (configOptions.model) return optionRequest(sessionId, configOptions.model, model);
  return models ? { method: 'session/set_model', params: { sessionId, modelId: model } } : null;
}

export function optionRequest(sessionId: string, { id }: SessionOption, value: string): AcpRequest {
  return { method: 'session/set_config_option', params: { sessionId, configId: id, value } };
}

/** The model that answers where none is named; null where the agent does not tell. */
export function currentModel({ models, configOptions }: SessionMade): string | null {
  return configOptions.model?.currentValue ?? models?.currentModelId ?? null;
}

/** null where the agent does not list them. */
export function modelsOf({ models, configOptions }: SessionMade): readonly ModelEntry[] | null {
  if (configOptions.model) return listed(configOptions.model.options, configOptions.model.currentValue);
  if (!models) return null;
  const known = models.availableModels.map(({ modelId, ...told }) => ({ value: modelId, ...told }));
  return listed(known, models.currentModelId);
}

/** The current one may be a name that is not in the list, such as an alias. */
function listed(known: SessionOption['options'], current: string): readonly ModelEntry[] {
  const entries = known.map(({ value, ...told }) => entryOf(value, told, current));
  const isListed = entries.some((entry) => entry.default);
  return isListed ? entries : [entryOf(current, { name: current }, current), ...entries];
}

interface ToldModel {
  readonly name: string;
  readonly description?: string | null | undefined;
}

function entryOf(id: string, { name, description }: ToldModel, current: string): ModelEntry {
  return { id, name, default: id === current, ...(description && { description }) };
}
