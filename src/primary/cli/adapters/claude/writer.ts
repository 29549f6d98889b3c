import type {
  Effort,
  Image,
  LaunchOptions,
  Sampling,
  ToolCall,
  ToolResult,
  Turn,
  TurnInput,
  TurnWriter,
} from '../../contract/adapter.js';
import { isObject, jsonOf } from '../common/lines.js';
import { type MessageContent, piecesOf } from '../common/transcript.js';
import { nameForCli, ToolServer } from './tool-server.js';

/** What a version takes over stdin once it runs: parts of a launch, of which the others are decided at its start, and tools. */
export type SettablePart = keyof LaunchOptions | 'tools';

type SentSettings = Pick<LaunchOptions, 'model' | 'effort'> & {
  /** Fields for the API beside the CLI's own, as JSON. */
  readonly extraBody: string;
  /** Empty without a limit. */
  readonly maxTokens: string;
  /** Whether the CLI asks the API for a text of the thoughts. Else a newer model shows a few words of them, or none. */
  readonly showsThoughts: boolean;
};

/** The CLI's own names. Null gives a setting back to the CLI. */
interface FlagSettings {
  model?: string | null;
  effortLevel?: Effort | null;
  env?: { readonly CLAUDE_CODE_EXTRA_BODY?: string; readonly CLAUDE_CODE_MAX_OUTPUT_TOKENS?: string };
}

/** Owns what was sent to one claude process beside its turns. */
export class ClaudeWriter implements TurnWriter {
  readonly tools = new ToolServer();
  readonly #settable: ReadonlySet<SettablePart>;
  #sent: SentSettings = { model: null, effort: null, extraBody: '{}', maxTokens: '', showsThoughts: false };
  #asked: Turn | null = null;

  /** `settable`: what this version takes over stdin. */
  constructor(settable: ReadonlySet<SettablePart>) {
    this.#settable = settable;
  }

  /** The turn that has no answer yet. */
  get asked(): Turn | null {
    return this.#asked;
  }

  /** The turn has its end: a process that waits holds no images. */
  answered(): void {
    this.#asked = null;
  }

  /**
   * The history is replayed with its roles. A user line of it must be taken in before the next line is written: the CLI
   * queues user lines but not assistant lines, so lines written at once lose their order.
   */
  write(turn: Turn, number: number): TurnInput {
    this.#asked = turn;
    if (this.tools.calls.isWaiting)
      return { text: this.#settings(turn) + this.tools.calls.answer(turn.results ?? []), stdin: 'keep-open' };
    const parts: string[] = [];
    let part = (number === 1 ? this.#introduction(turn) : '') + this.#settings(turn);
    for (const [index, message] of turn.history.entries()) {
      part += message.role === 'user' ? userLine(message, { shouldQuery: false }) : assistantLine(message, index);
      if (message.role === 'user') {
        parts.push(part);
        part = '';
      }
    }
    const [first = '', ...rest] = [...parts, part + userLine(turn, { uuid: turnIdOf(number) })];
    return { text: first, rest, stdin: 'keep-open' };
  }

  /** The CLI takes it once, before its first turn, and ignores any other without a word. */
  #introduction({ system, schema, offer }: Turn): string {
    const parts = {
      ...(system !== null && this.#settable.has('system') && { systemPrompt: guardedSystem(system) }),
      ...(schema !== null && this.#settable.has('schema') && { jsonSchema: schemaOf(schema) }),
      ...(offer !== undefined && this.tools.introduce(offer.tools)),
    };
    return Object.keys(parts).length === 0 ? '' : controlLine(introduction, { subtype: 'initialize', ...parts });
  }

  /** Only what differs: after a first turn, a change of the model leaves a text of the CLI's own in the context. */
  #settings(turn: Turn): string {
    const { model, effort } = turn;
    const extraBody = JSON.stringify(extraBodyOf(turn));
    const settings: FlagSettings = {};
    if (model !== this.#sent.model && this.#settable.has('model')) settings.model = model;
    if (effort !== this.#sent.effort && this.#settable.has('effort')) settings.effortLevel = effort;
    const maxTokens = String(turn.sampling?.maxTokens ?? '');
    if (extraBody !== this.#sent.extraBody) settings.env = { CLAUDE_CODE_EXTRA_BODY: extraBody };
    if (maxTokens !== this.#sent.maxTokens)
      settings.env = { ...settings.env, CLAUDE_CODE_MAX_OUTPUT_TOKENS: maxTokens };
    const showsThoughts = turn.thinking === 'summarized';
    const display = showsThoughts === this.#sent.showsThoughts ? '' : displayLine(showsThoughts);
    this.#sent = { model, effort, extraBody, maxTokens, showsThoughts };
    if (Object.keys(settings).length === 0) return display;
    return display + controlLine(modelSettings, { subtype: 'apply_flag_settings', settings });
  }
}

const introduction = 'system text and schema';

/** The API accepts a temperature up to 1, no `top_p` beside it, and neither while the model thinks. */
export function fitSampling({ temperature, topP, maxTokens }: Sampling, thinks: boolean): Sampling {
  const isFree = !thinks || isTooLittleToThink(maxTokens);
  return {
    ...(temperature !== undefined && (isFree || temperature === 1) && { temperature: Math.min(1, temperature) }),
    ...(topP !== undefined && temperature === undefined && (isFree || topP >= 0.95) && { topP }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
}

const minThinkingTokens = 1024;

/** The limit includes what the model thinks. The CLI fits its budget to it, and the limit to the maximum of the model. */
function isTooLittleToThink(maxTokens = Number.POSITIVE_INFINITY): boolean {
  return maxTokens <= minThinkingTokens;
}

/** As the Messages API has them. Nothing of a client's own object gets here. A forced call leaves no room for thinking. */
function extraBodyOf({ offer, sampling = {}, stop = [], effort, thinking }: Turn): object {
  const { temperature = 1, topP = 1, maxTokens } = sampling;
  const thinks = effort !== null || thinking !== undefined;
  const isSteered = !thinks && (temperature !== 1 || topP < 0.95);
  return {
    ...((isSteered || isTooLittleToThink(maxTokens)) && { thinking: { type: 'disabled' } }),
    ...(offer !== undefined && toolChoiceOf(offer)),
    ...(sampling.temperature !== undefined && { temperature }),
    ...(sampling.topP !== undefined && { top_p: topP }),
    ...(stop.length > 0 && { stop_sequences: stop }),
  };
}

function toolChoiceOf({ choice, isParallel }: NonNullable<Turn['offer']>): object {
  const single = isParallel ? {} : { disable_parallel_tool_use: true };
  const thinking = { type: 'disabled' };
  if (choice === 'none') return { tool_choice: { type: 'none' } };
  if (choice === 'required') return { tool_choice: { type: 'any', ...single }, thinking };
  if (choice !== 'auto') return { tool_choice: { type: 'tool', name: nameForCli(choice.name), ...single }, thinking };
  return isParallel ? {} : { tool_choice: { type: 'auto', ...single } };
}

/** Answered without a model call, with a line that has the same id. */
export function controlLine(id: string, request: { readonly subtype: string; readonly [field: string]: unknown }) {
  return `${JSON.stringify({ type: 'control_request', request_id: id, request })}\n`;
}

/** The id of the line with the model and the effort of a turn. */
export const modelSettings = 'model and effort';

/** The id of the line with how thoughts are shown. */
export const thoughtSettings = 'thoughts';

/** Says nothing of whether the model thinks, and how much. */
function displayLine(showsThoughts: boolean): string {
  const thinking_display = showsThoughts ? 'summarized' : null;
  return controlLine(thoughtSettings, { subtype: 'set_max_thinking_tokens', thinking_display });
}

/** As the CLI takes it. `schema` is JSON. */
export function schemaOf(schema: string): unknown {
  return knownToClaude(JSON.parse(schema));
}

/** As the Messages API takes it. */
export function imageBlock({ mediaType, data }: Image) {
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } } as const;
}

/** The first system block of a request describes the CLI. A system text of that form would replace it. */
export function guardedSystem(system: string): string {
  return guarded(system, /^x-anthropic-/);
}

const slashCommand = /^\//;

/** A newline in front keeps the CLI from taking the text for a command or a block of its own. */
function guarded(text: string, trigger: RegExp): string {
  return trigger.test(text) ? `\n${text}` : text;
}

type UserTurn = MessageContent & { readonly results?: readonly ToolResult[] | undefined };

/** `client_composed` asks newer versions to expand nothing in the text and to run no command in it. */
function userLine(message: UserTurn, extras: { readonly shouldQuery: false } | { readonly uuid: string }): string {
  const line = { type: 'user', message: { role: 'user', content: userContent(message) }, client_composed: true };
  return `${JSON.stringify({ ...line, ...extras })}\n`;
}

/** Results come first: the API takes them nowhere else. */
function userContent(message: UserTurn) {
  const { results = [] } = message;
  if (results.length === 0) return contentOf(message);
  return [...results.map(resultBlock), ...blocksOf(message)];
}

function resultBlock(result: ToolResult): object {
  return { type: 'tool_result', tool_use_id: result.id, content: blocksOf(result), is_error: result.isError };
}

/** Older versions take the last piece for a command, if it begins like one. */
function contentOf(message: MessageContent) {
  return (message.images ?? []).length === 0 ? guarded(message.text, slashCommand) : blocksOf(message);
}

/** The text, cut where its images stand. */
function blocksOf(message: MessageContent): readonly object[] {
  return piecesOf(message).flatMap((piece): readonly object[] =>
    typeof piece === 'string' ? textBlocks(piece) : [imageBlock(piece)],
  );
}

/** The API takes no blank ones. */
function textBlocks(text: string) {
  return text.trim() === '' ? [] : [{ type: 'text', text: guarded(text, slashCommand) } as const];
}

/** Without ids of their own, 2.1.197 confuses the order of messages with calls. */
function assistantLine(
  { text, calls = [] }: { readonly text: string; readonly calls?: readonly ToolCall[] | undefined },
  index: number,
): string {
  const content = calls.length === 0 ? [{ type: 'text', text }] : [...textBlocks(text), ...calls.map(callBlock)];
  const message = { id: `msg_replay_${index}`, role: 'assistant', content };
  return `${JSON.stringify({ type: 'assistant', message })}\n`;
}

function callBlock({ id, name, input }: ToolCall): object {
  return { type: 'tool_use', id, name: nameForCli(name), input: inputOf(input) };
}

/** The API takes objects alone. */
function inputOf(json: string): unknown {
  const value: unknown = jsonOf(json);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

/**
 * The id of a turn as claude knows it: that of its user line. Newer versions (2.1.330 does, 2.1.197 does not) name it in
 * the lines that answer the turn. It must have the form of a UUID, and is unique within one process.
 */
export function turnIdOf(turn: number): string {
  return `${prefix}${turn.toString(16).padStart(12, '0')}`;
}

const prefix = '00000000-0000-4000-8000-';

/** Whether a line names a turn of ours, and not this one. An id that is not ours has no meaning. */
export function isOfOtherTurn(named: string | null | undefined, turn: number | null): boolean {
  return turn !== null && named?.startsWith(prefix) === true && named !== turnIdOf(turn);
}

type SchemaObject = Readonly<Record<string, unknown>>;

const notes = ['title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly', 'examples', '$comment'];
const names = ['$id', '$ref', 'format', 'contentMediaType', 'contentEncoding', 'nullable'];
const limits = ['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength'];
const counts = ['pattern', 'maxItems', 'minItems', 'uniqueItems', 'maxProperties', 'minProperties'];
const plainKeywords = new Set([...notes, ...names, ...limits, ...counts, 'type', 'enum', 'const', 'required']);
const deepKeywords = new Set(
  ['items', 'additionalItems', 'contains', 'propertyNames', 'additionalProperties'].concat(
    ['not', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf'], // hold a schema or a list of schemas
  ),
);
const namedKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

/**
 * A schema as claude takes it: without a word it drops one that names a newer draft than 07 or holds a keyword which that
 * draft does not know, and then it answers as if there were none. Such keywords stand in the description instead; the
 * answer is checked against the whole schema in any case.
 */
export function knownToClaude(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(knownToClaude);
  if (!isObject(schema)) return schema;
  const { $schema: _draft, ...rest } = schema;
  const isTuple = 'prefixItems' in schema; // then `items` means only what comes after those
  const isTaken = ([keyword, value]: [string, unknown]) =>
    isKnown(keyword) && !(isTuple && keyword === 'items') && !hasOddPattern(keyword, value);
  const entries = Object.entries(rest);
  const unknown = Object.fromEntries(entries.filter((entry) => !isTaken(entry)));
  const known = Object.fromEntries(entries.filter(isTaken).map(deeper));
  if (Object.keys(unknown).length === 0) return known;
  return { ...known, description: described(schema.description, unknown) };
}

function isKnown(keyword: string): boolean {
  return plainKeywords.has(keyword) || deepKeywords.has(keyword) || namedKeywords.has(keyword);
}

/** Whether the CLI cannot compile a pattern: it reads patterns with the flag `u`. */
function hasOddPattern(keyword: string, value: unknown): boolean {
  const patterns = keyword === 'patternProperties' && isObject(value) ? Object.keys(value) : [value];
  if (keyword !== 'pattern' && keyword !== 'patternProperties') return false;
  return !patterns.every(isUnicodePattern);
}

function isUnicodePattern(pattern: unknown): boolean {
  try {
    return typeof pattern === 'string' && new RegExp(pattern, 'u') !== null;
  } catch {
    return false;
  }
}

function deeper([keyword, value]: [string, unknown]): [string, unknown] {
  if (deepKeywords.has(keyword)) return [keyword, knownToClaude(value)];
  if (!namedKeywords.has(keyword) || !isObject(value)) return [keyword, value];
  return [keyword, Object.fromEntries(Object.entries(value).map(([name, part]) => [name, knownToClaude(part)]))];
}

function described(description: unknown, unknown: SchemaObject): string {
  const words = `Of its JSON Schema: ${JSON.stringify(unknown)}`;
  return typeof description === 'string' ? `${description}\n${words}` : words;
}
