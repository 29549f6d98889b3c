import { cliError } from '../../../../shared/errors.js';
import {
  type Attachment,
  type CacheBreakpoint,
  type Effort,
  type FileDocument,
  type Image,
  isDocument,
  type LaunchOptions,
  type Message,
  type ToolCall,
  type ToolResult,
  type Turn,
  type TurnInput,
  type TurnWriter,
} from '../../contract/adapter.js';
import { isObject } from '../common/lines.js';
import { attachedPieces, type MessageContent } from '../common/transcript.js';
import { controlLine } from './control-line.js';
import { historyIdOf, turnIdOf } from './line-ids.js';
import { type ClaudeModelRules, ClaudeModels } from './model-rules.js';
import { extraBodyOf, type ThinkingMode, thoughtsFor } from './request-fields.js';
import { Rewinding } from './rewinding.js';
import { cutAt, nameForCli, ToolServer } from './tool-server.js';
import { WebSearches } from './web-searches.js';

/**
 * Part that a version takes over stdin after its start: a launch option or the tools. All other launch options are set
 * at the start. `rewinding`: the version can rewind its conversation.
 */
export type SettablePart = keyof LaunchOptions | 'tools' | 'rewinding';

type SentSettings = Pick<LaunchOptions, 'model' | 'effort'> & {
  /** Additional fields of the API request, as JSON. */
  readonly extraBody: string;
  /** Output token limit; empty if unlimited. */
  readonly maxTokens: string;
  /** Whether thoughts are off. */
  readonly isThoughtless: boolean;
  /** Whether the API returns a summary of thoughts. Without it, newer models show few words of them, or none. */
  readonly showsThoughts: boolean;
  /** Time to live of the API's prompt cache; null leaves it to the CLI. */
  readonly cacheTtl: CacheBreakpoint['ttl'] | null;
};

/** Setting names of the CLI. Null restores the CLI's default. */
interface FlagSettings {
  model?: string | null;
  effortLevel?: Effort | null;
  env?: Readonly<Record<string, string>>;
}

/** Use of the API's prompt cache by processes with one credential. */
export interface CacheHabits {
  /** Time to live, if the client requests no longer one. */
  readonly ttl: CacheBreakpoint['ttl'];
  /** Whether a replay gets a breakpoint even if the client sets none: see `cachedContent`. */
  readonly inReplays: boolean;
}

const usualHabits: CacheHabits = { ttl: '5m', inReplays: false };

/**
 * Variables with which the CLI uses one time to live for all its breakpoints, whatever its credential and its other
 * settings. The API refuses a longer time after a shorter one.
 */
const cacheVariables = {
  '5m': { FORCE_PROMPT_CACHING_5M: '1' },
  '1h': { FORCE_PROMPT_CACHING_5M: '', CLAUDE_CODE_PROMPT_CACHE_TTL: '1h', ENABLE_PROMPT_CACHING_1H: '1' },
} as const;

const unset: SentSettings = {
  ...{ model: null, effort: null, extraBody: '{}', maxTokens: '' },
  ...{ isThoughtless: false, showsThoughts: false, cacheTtl: null },
};

/** Writes the turns of one claude process, and tracks the settings that it has. */
export class ClaudeWriter implements TurnWriter {
  readonly tools = new ToolServer();
  readonly searches = new WebSearches();
  readonly rewinding = new Rewinding();
  readonly #settable: ReadonlySet<SettablePart>;
  readonly #cacheHabits: CacheHabits;
  #sent: SentSettings = unset;
  readonly #models: ClaudeModels;
  #currentTurn: Turn | null = null;
  #hasCitations = false;
  /** Whether the context of the CLI is empty. */
  #isEmpty = true;
  /** First turn with the parts that the CLI accepts only once; null before. */
  #introduced: Pick<Turn, 'system' | 'schema' | 'offer'> | null = null;
  #hasSearched = false;
  #historyLines = 0;
  /** Whether the current tool round began without a thought, so that it must end without one. */
  #isThoughtless = false;

  /** `settable`: parts that this version takes over stdin. `models` is shared by all processes of the version. */
  constructor(
    settable: ReadonlySet<SettablePart>,
    cacheHabits: CacheHabits = usualHabits,
    models: ClaudeModels = new ClaudeModels(),
  ) {
    this.#settable = settable;
    this.#cacheHabits = cacheHabits;
    this.#models = models;
  }

  /** Turn without an end; null between turns. */
  get currentTurn(): Turn | null {
    return this.#currentTurn;
  }

  /** Whether the CLI has received a document that an answer should cite. */
  get hasCitations(): boolean {
    return this.#hasCitations;
  }

  /** Records the model that answers the current turn. */
  noteModel(model: string): void {
    if (this.#currentTurn !== null) this.#models.noteAnswer(this.#currentTurn.model, model);
  }

  /** Clears the turn at its end, so that an idle process holds no images or documents. */
  answered(): void {
    this.#currentTurn = null;
  }

  /**
   * Returns the input of a turn. The history is replayed with its roles. The CLI queues user lines but not assistant
   * lines, so after each user line of the history, the next piece waits until the CLI has accepted it.
   */
  write(turn: Turn, number: number): TurnInput {
    this.#currentTurn = turn;
    this.#hasCitations ||= [turn, ...turn.history].some(({ images = [] }) => images.some(mustBeCited));
    this.searches.beginTurn(turn.search ?? null);
    this.#hasSearched ||= turn.search !== undefined;
    const cache = this.#isEmpty ? this.#breakpointOf(turn) : undefined;
    const settings = this.#settings(turn, cache);
    if (this.tools.calls.isWaiting)
      return { text: settings + this.tools.calls.answer(turn.results ?? []), stdin: 'keep-open' };
    const before = (this.#isEmpty ? this.#introduce(turn) : '') + settings;
    this.#isEmpty = false;
    const known = turn.heard?.length ?? 0;
    const lines = turn.history.map((message, index): InputLine => {
      const at = known + index;
      if (message.role !== 'user') return { isTaken: false, make: () => assistantLine(message, at) };
      const extras = this.#historyExtras(at);
      return { isTaken: true, make: () => userLine(message, extras) };
    });
    const uuid = turnIdOf(number);
    this.rewinding.noteLine(uuid, known + turn.history.length);
    const parts = partsOf(before, [...lines, { isTaken: true, make: () => userLine(turn, { uuid }, cache) }]);
    return { text: parts.next().value ?? '', rest: parts, stdin: 'keep-open' };
  }

  /**
   * Returns the requests that rewind the conversation to its start. A search may have left its results, and a time to
   * live of the prompt cache cannot be taken back.
   */
  renew(): TurnInput | null {
    const isStained = this.#hasSearched || this.#sent.cacheTtl !== null || this.tools.calls.isWaiting;
    const text = isStained || !this.#settable.has('rewinding') ? null : this.rewinding.beginRewinding();
    if (text === null) return null;
    this.#currentTurn = null;
    this.#hasCitations = false;
    this.#isEmpty = true;
    return { text, stdin: 'keep-open' };
  }

  /** Adds a message for the next web search of the turn, which is its only pause. */
  add(text: string) {
    if (this.#currentTurn?.search === undefined) return null;
    const { additions, isSearching } = this.searches;
    const id = additions.addMessage((uuid) => userLine({ text }, { uuid }));
    return id === null ? null : { id, input: isSearching ? additions.takeLines() : '' };
  }

  /** Returns the requests that leave only these first messages. A search may have left its results. */
  rewind(kept: readonly Message[]): TurnInput | null {
    const isStained = this.#hasSearched || this.tools.calls.isWaiting;
    const text = isStained || !this.#settable.has('rewinding') ? null : this.rewinding.beginRewinding(kept);
    if (text === null) return null;
    this.#currentTurn = null;
    this.#hasCitations = false; // an export proves no message with a document
    return { text, stdin: 'keep-open' };
  }

  /** Returns the request that ends the turn; only its end if the CLI has ended the turn itself. */
  interrupt(): TurnInput | null {
    if (!this.#settable.has('rewinding') || this.tools.calls.isWaiting) return null;
    return { text: this.rewinding.interrupt(this.#currentTurn !== null), stdin: 'keep-open' };
  }

  /** Returns the fields of a user line of the history. Its id lets the conversation be rewound to it. */
  #historyExtras(at: number): { readonly shouldQuery: false; readonly uuid?: string } {
    if (!this.#settable.has('rewinding')) return { shouldQuery: false };
    const uuid = historyIdOf(++this.#historyLines);
    this.rewinding.noteLine(uuid, at);
    return { shouldQuery: false, uuid };
  }

  /** Returns the `initialize` request of the first turn. Throws if a later turn needs another one. */
  #introduce(turn: Turn): string {
    const { system, schema, offer } = turn;
    const before = this.#introduced;
    this.#introduced ??= { system, schema, ...(offer && { offer }) };
    if (before === null) return this.#introduction(turn);
    const hasTools = JSON.stringify(before.offer?.tools) === JSON.stringify(offer?.tools);
    if (before.system === system && before.schema === schema && hasTools) return '';
    throw cliError('other', 'the model CLI has the system text, schema or tools of another request');
  }

  /**
   * Returns the breakpoint of the first turn. The API accepts four, and the CLI sets three: only one more may be set in
   * a conversation.
   */
  #breakpointOf({ cache, history }: Turn): CacheBreakpoint | undefined {
    const { ttl, inReplays } = this.#cacheHabits;
    const isSet = cache === undefined ? inReplays && history.length > 0 : cache !== null;
    if (!isSet) return undefined;
    return { restLength: cache?.restLength ?? 0, ttl: cache?.ttl === '1h' ? '1h' : ttl };
  }

  /**
   * Returns the `initialize` request. The CLI accepts only the first one before its first turn, and silently ignores
   * others.
   */
  #introduction({ system, schema, offer }: Turn): string {
    const parts = {
      ...(system !== null && this.#settable.has('system') && { systemPrompt: guardedSystem(system) }),
      ...(schema !== null && this.#settable.has('schema') && { jsonSchema: schemaOf(schema) }),
      ...(offer !== undefined && this.tools.introduce(offer.tools)),
    };
    return Object.keys(parts).length === 0 ? '' : controlLine(introduction, { subtype: 'initialize', ...parts });
  }

  /**
   * Returns requests for changed settings only: after the first turn, a change of the model adds a text of the CLI to
   * the context.
   */
  #settings(turn: Turn, cache: CacheBreakpoint | undefined): string {
    const { model } = turn;
    const rules = this.#models.rulesOf(model);
    const thoughts = this.#thoughtsOf(turn, rules);
    const effort = turn.effort ?? (thoughts === 'least' ? 'low' : null);
    const extraBody = JSON.stringify(extraBodyOf(turn, thoughts));
    const settings: FlagSettings = {};
    if (model !== this.#sent.model && this.#settable.has('model')) settings.model = model;
    if (effort !== this.#sent.effort && this.#settable.has('effort')) settings.effortLevel = effort;
    const maxTokens = String(turn.sampling?.maxTokens ?? '');
    if (extraBody !== this.#sent.extraBody) settings.env = { CLAUDE_CODE_EXTRA_BODY: extraBody };
    if (maxTokens !== this.#sent.maxTokens)
      settings.env = { ...settings.env, CLAUDE_CODE_MAX_OUTPUT_TOKENS: maxTokens };
    const cacheTtl = cache?.ttl ?? this.#sent.cacheTtl;
    if (cacheTtl !== null && cacheTtl !== this.#sent.cacheTtl)
      settings.env = { ...settings.env, ...cacheVariables[cacheTtl] };
    const [isThoughtless, showsThoughts] = [thoughts === 'off', turn.thinking === 'summarized'];
    const isSame = isThoughtless === this.#sent.isThoughtless && showsThoughts === this.#sent.showsThoughts;
    const line = isSame ? '' : thoughtsLine(isThoughtless, showsThoughts);
    this.#sent = { model, effort, extraBody, maxTokens, isThoughtless, showsThoughts, cacheTtl };
    if (Object.keys(settings).length === 0) return line;
    return line + controlLine(modelSettings, { subtype: 'apply_flag_settings', settings });
  }

  /**
   * Returns how much the model thinks in this turn. With a budget, the API accepts the results of a tool round only
   * behind a thought, and the CLI drops thoughts from a replay.
   */
  #thoughtsOf(turn: Turn, rules: ClaudeModelRules): ThinkingMode {
    const isInRound = turn.results !== undefined;
    const isReplayed = isInRound && !this.tools.calls.isWaiting;
    const needsNone = rules.thinksByBudget && (isReplayed || (isInRound && this.#isThoughtless));
    const thoughts = needsNone ? 'off' : thoughtsFor(turn, rules);
    this.#isThoughtless = thoughts !== 'default' && thoughts !== 'least';
    return thoughts;
  }
}

/** Line of a turn, which is made when it is written. `isTaken`: whether the CLI reports that it has accepted the line. */
interface InputLine {
  readonly isTaken: boolean;
  make(): string;
}

/** Yields the lines in parts, each up to a line whose acceptance the CLI reports. */
function* partsOf(before: string, lines: readonly InputLine[]): Generator<string, undefined> {
  let part = before;
  for (const { isTaken, make } of lines) {
    part += make();
    if (!isTaken) continue;
    yield part;
    part = '';
  }
}

const introduction = 'system text and schema';

/** Id of the request that sets model and effort. */
export const modelSettings = 'model and effort';

/** Id of the request about thoughts. */
export const thoughtSettings = 'thoughts';

/** Returns the request that switches thoughts off where the model allows it, and sets how they are shown. */
function thoughtsLine(isOff: boolean, showsThoughts: boolean): string {
  const max_thinking_tokens = isOff ? 0 : null; // null stands for the default of the CLI
  const thinking_display = showsThoughts ? 'summarized' : null; // null: newer models show few words of them, or none
  return controlLine(thoughtSettings, { subtype: 'set_max_thinking_tokens', max_thinking_tokens, thinking_display });
}

/** Returns the schema in the form that the CLI accepts. `schema` is JSON. */
export function schemaOf(schema: string): unknown {
  return knownToClaude(JSON.parse(schema));
}

/** Returns the image as a block of the Messages API. */
export function imageBlock({ mediaType, data }: Image) {
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } } as const;
}

function mustBeCited(attachment: Attachment): boolean {
  return isDocument(attachment) && attachment.citations === true;
}

/** Returns the document as a block of the Messages API. */
export function documentBlock({ mediaType, data, name, context, citations }: FileDocument) {
  const source =
    mediaType === 'text/plain'
      ? { type: 'text', media_type: mediaType, data: Buffer.from(data, 'base64').toString() }
      : { type: 'base64', media_type: mediaType, data };
  const cited = citations && { citations: { enabled: true } };
  return { type: 'document', source, ...(name !== '' && { title: name }), ...(context && { context }), ...cited };
}

/**
 * Guards a system text. The first system block of a request describes the CLI, and a system text of the same form would
 * replace it.
 */
export function guardedSystem(system: string): string {
  return guarded(system, /^x-anthropic-/);
}

const slashCommand = /^\//;

/** Adds a leading newline if the CLI would take the text for a command or a system block. */
function guarded(text: string, trigger: RegExp): string {
  return trigger.test(text) ? `\n${text}` : text;
}

type UserTurn = MessageContent & { readonly results?: readonly ToolResult[] | undefined };

/** Returns a user line. `client_composed` asks newer versions not to expand or run anything in the text. */
function userLine(
  message: UserTurn,
  extras: { readonly shouldQuery?: false; readonly uuid?: string },
  cache?: CacheBreakpoint,
): string {
  const content = cache === undefined ? userContent(message) : cachedContent(message, cache);
  const line = { type: 'user', message: { role: 'user', content }, client_composed: true };
  return `${JSON.stringify({ ...line, ...extras })}\n`;
}

/** Returns the content blocks, results first: the API accepts them only there. */
function userContent(message: UserTurn) {
  const { results = [] } = message;
  return results.length === 0 ? contentOf(message) : userBlocks(message);
}

function userBlocks(message: UserTurn): readonly object[] {
  return [...(message.results ?? []).map(resultBlock), ...blocksOf(message)];
}

/**
 * Returns the content blocks with a breakpoint. At the end of the message, it matters only if the CLI adds a text after
 * it: with a login, newer versions (2.1.330, not 2.1.197) describe the host there, and set their own breakpoint after
 * that. A replay moves this text, so that only a breakpoint before it is found again.
 */
function cachedContent(message: UserTurn, { ttl, restLength }: CacheBreakpoint): readonly object[] {
  const { text, images = [], results } = message;
  const end = cutAt(text, Math.max(0, text.length - restLength));
  const before = images.filter(({ at }) => at <= end);
  const after = images.filter(({ at }) => at > end).map((image) => ({ ...image, at: image.at - end }));
  const cached = userBlocks({ text: text.slice(0, end), images: before, results });
  const rest = blocksOf({ text: text.slice(end), images: after });
  const cache_control = { type: 'ephemeral', ...(ttl === '1h' && { ttl }) };
  return [...cached.slice(0, -1), ...cached.slice(-1).map((block) => ({ ...block, cache_control })), ...rest];
}

function resultBlock(result: ToolResult): object {
  return { type: 'tool_result', tool_use_id: result.id, content: blocksOf(result), is_error: result.isError };
}

/** Guards the text, because older versions take the last piece for a command if it begins like one. */
function contentOf(message: MessageContent) {
  return (message.images ?? []).length === 0 ? guarded(message.text, slashCommand) : blocksOf(message);
}

/** Splits the message into blocks at the positions of its images and documents. */
function blocksOf(message: MessageContent): readonly object[] {
  return attachedPieces(message).flatMap((piece): readonly object[] => {
    if (typeof piece === 'string') return textBlocks(piece);
    return [isDocument(piece) ? documentBlock(piece) : imageBlock(piece)];
  });
}

/** Returns a text block; an empty list for blank text, which the API rejects. */
function textBlocks(text: string) {
  return text.trim() === '' ? [] : [{ type: 'text', text: guarded(text, slashCommand) } as const];
}

/** Returns an assistant line. Without a message id, 2.1.197 confuses the order of messages with calls. */
function assistantLine(
  { text, calls = [] }: { readonly text: string; readonly calls?: readonly ToolCall[] | undefined },
  index: number,
): string {
  const texts = calls.length === 0 ? [{ type: 'text', text }] : textBlocks(text);
  const blocks = [...texts.map((block) => JSON.stringify(block)), ...calls.map(callBlock)];
  const id = `msg_replay_${index}`;
  return `{"type":"assistant","message":{"id":"${id}","role":"assistant","content":[${blocks.join(',')}]}}\n`;
}

/**
 * Returns the JSON of a call. The input is copied as the worker has checked it, because parsing a client's input may
 * take long.
 */
function callBlock({ id, name, input }: ToolCall): string {
  return `${JSON.stringify({ type: 'tool_use', id, name: nameForCli(name) }).slice(0, -1)},"input":${inputOf(input)}}`;
}

/**
 * Returns the input on one line; `{}` for any value but an object, as the API requires. In valid JSON, line breaks
 * occur only between values.
 */
function inputOf(json: string): string {
  const input = json.replace(/[\r\n]/g, ' ').trim();
  return input.startsWith('{') && input.endsWith('}') ? input : '{}';
}

type SchemaObject = Readonly<Record<string, unknown>>;

const notes = ['title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly', 'examples', '$comment'];
const names = ['$id', '$ref', 'format', 'contentMediaType', 'contentEncoding', 'nullable'];
const limits = ['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength'];
const counts = ['pattern', 'maxItems', 'minItems', 'uniqueItems', 'maxProperties', 'minProperties'];
const plainKeywords = new Set([...notes, ...names, ...limits, ...counts, 'type', 'enum', 'const', 'required']);
const deepKeywords = new Set(
  ['items', 'additionalItems', 'contains', 'propertyNames', 'additionalProperties'].concat(
    ['not', 'if', 'then', 'else', 'anyOf', 'oneOf', 'allOf'], // contain a schema or a list of schemas
  ),
);
const namedKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions']);

/**
 * Returns a schema that the CLI accepts. The CLI silently drops a schema that names a newer draft than 07 or has
 * keywords unknown to that draft, and answers without it. This function moves these keywords into the description. The
 * answer is checked against the whole schema in any case.
 */
export function knownToClaude(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(knownToClaude);
  if (!isObject(schema)) return schema;
  const { $schema: _draft, ...rest } = schema;
  const isTuple = 'prefixItems' in schema; // `items` then applies only to further elements
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

/** Whether a keyword contains a pattern that the CLI cannot compile; it uses the flag `u`. */
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
