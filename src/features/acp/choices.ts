import type { ModelEntry } from '../../primary/cli/contract/adapter.js';
import type { SessionMade, SessionOption } from './lines.js';

/** Request of the protocol, without its id. */
export interface AcpRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Returns the request that sets the model of a session; null if the agent does not support it. */
export function modelRequest({ sessionId, models, configOptions }: SessionMade, model: string): AcpRequest | null {
  if (configOptions.model) return optionRequest(sessionId, configOptions.model, model);
  return models ? { method: 'session/set_model', params: { sessionId, modelId: model } } : null;
}

function optionRequest(sessionId: string, { id }: SessionOption, value: string): AcpRequest {
  return { method: 'session/set_config_option', params: { sessionId, configId: id, value } };
}

/** Returns the model of prompts that name no model; null if the agent does not report it. */
export function currentModel({ models, configOptions }: SessionMade): string | null {
  return configOptions.model?.currentValue ?? models?.currentModelId ?? null;
}

/** Returns the agent's models; null if it does not list them. */
export function modelsOf({ models, configOptions }: SessionMade): readonly ModelEntry[] | null {
  if (configOptions.model) return listed(configOptions.model.options, configOptions.model.currentValue);
  if (!models) return null;
  const known = models.availableModels.map(({ modelId, ...rest }) => ({ value: modelId, ...rest }));
  return listed(known, models.currentModelId);
}

/** Converts the list. The current model may be missing from it, such as an alias, and is then added. */
function listed(known: SessionOption['options'], current: string): readonly ModelEntry[] {
  const entries = known.map(({ value, ...rest }) => entryOf(value, rest, current));
  const isListed = entries.some((entry) => entry.default);
  return isListed ? entries : [entryOf(current, { name: current }, current), ...entries];
}

interface OfferedModel {
  readonly name: string;
  readonly description?: string | null | undefined;
}

function entryOf(id: string, { name, description }: OfferedModel, current: string): ModelEntry {
  return { id, name, default: id === current, ...(description && { description }) };
}

/** Names of modes, the strictest first: modes without tools, read-only modes, and modes that request permission. */
const strictness: readonly RegExp[] = [
  /^chat$/,
  /^read-?only$/,
  /^(ask|dont-?ask|deny)$/,
  /^(plan|architect)$/,
  /^(default|always-?ask|approve|manual|normal|suggest)$/,
];

interface OfferedModes {
  readonly current: string;
  readonly offered: readonly string[];
}

/** Request that sets the mode of a session. */
export interface ModeRequest extends AcpRequest {
  readonly mode: string;
  /** Whether the session already has this mode. Its answer then only shows that the agent has finished its greeting. */
  readonly isCurrent: boolean;
}

/**
 * Returns the request for the strictest mode of a session, or for `usual` if the session offers it. A mode with an
 * unknown name ranks last. Returns null if the session has no modes.
 */
export function modeRequest(session: SessionMade, usual: string | null): ModeRequest | null {
  const modes = modesOf(session);
  if (modes === null) return null;
  const { current, offered } = modes;
  const mode = usual !== null && offered.includes(usual) ? usual : strictestOf(modes);
  return { ...requestFor(session, mode), mode, isCurrent: mode === current };
}

function strictestOf({ current, offered }: OfferedModes): string {
  const ranks = [current, ...offered].map((mode) => ({ mode, rank: rankOf(mode) }));
  return ranks.reduce((best, next) => (next.rank < best.rank ? next : best)).mode;
}

/** Returns the rank of a mode. Some modes are named by addresses, whose last part describes them. */
function rankOf(mode: string): number {
  const name = mode.split(/[/#:]/).at(-1) ?? mode;
  const words = name
    .replace(/(?<=[a-z])(?=[A-Z])/g, '-')
    .toLowerCase()
    .replaceAll('_', '-');
  const rank = strictness.findIndex((sign) => sign.test(words));
  return rank < 0 ? strictness.length : rank;
}

function modesOf({ modes, configOptions: { mode } }: SessionMade): OfferedModes | null {
  if (modes) return { current: modes.currentModeId, offered: modes.availableModes.map(({ id }) => id) };
  return mode && { current: mode.currentValue, offered: mode.options.map(({ value }) => value) };
}

function requestFor({ sessionId, modes, configOptions: { mode: option } }: SessionMade, mode: string): AcpRequest {
  if (modes || !option) return { method: 'session/set_mode', params: { sessionId, modeId: mode } };
  return optionRequest(sessionId, option, mode);
}
