/** Fields of a request's content block that the rules check. */
interface Block {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly tool_use_id?: string;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

interface Thinking {
  readonly type: string;
  readonly budget_tokens?: number;
}

/** The fields of a request that the rules check. */
export interface CheckedRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly system?: unknown;
  readonly max_tokens: number;
  readonly tools?: readonly { readonly name?: string; readonly input_schema?: unknown }[];
  readonly stop_sequences?: readonly string[];
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly thinking?: unknown;
  readonly tool_choice?: unknown;
  readonly context_management?: unknown;
}

/** Limits that differ between models. */
export interface ModelRules {
  /** Whether the model accepts both `temperature` and `top_p`; false if not set. */
  readonly allowsTopPBesideTemperature?: boolean;
  /** The model's maximum of `max_tokens`; no maximum if not set. */
  readonly maxTokens?: number;
}

const idForm = /^[a-zA-Z0-9_-]+$/;
const nameForm = /^[a-zA-Z0-9_-]{1,128}$/;
const propertyForm = /^[a-zA-Z0-9_.-]{1,64}$/;

/**
 * Returns the error message with which the real Messages API refuses a request; null if it accepts the request. Each
 * rule comes from a public bug report.
 */
export function findFault(request: CheckedRequest, rules: ModelRules = {}): string | null {
  return (
    familyFault(request) ??
    messagesFault(request.messages) ??
    toolsFault(request.tools ?? []) ??
    samplingFault(request, rules) ??
    cacheFault(request)
  );
}

/** Fields that the models of one family accept, by the migration guides of October 2026. */
interface Family {
  readonly name: RegExp;
  readonly thinking: readonly string[];
  readonly canBeForced: boolean;
  readonly samples: boolean;
  readonly prefills: boolean;
}

const families: readonly Family[] = [
  { name: /opus-5-5|fable-5/, thinking: ['adaptive'], canBeForced: false, samples: false, prefills: false },
  { name: /sonnet-5-5/, thinking: ['adaptive', 'between_tools'], canBeForced: false, samples: false, prefills: false },
  { name: /haiku-5-5/, thinking: ['adaptive'], canBeForced: true, samples: false, prefills: false },
  {
    name: /(?:opus|sonnet)-5(?!-5)|-4-[78]/,
    ...{ thinking: ['adaptive', 'disabled'], canBeForced: true, samples: false, prefills: true },
  },
  { name: /-4-5/, thinking: ['enabled', 'disabled'], canBeForced: true, samples: true, prefills: true },
];

function familyFault(request: CheckedRequest): string | null {
  const { model, messages, thinking, tool_choice: choice } = request;
  const family = families.find(({ name }) => name.test(model));
  if (family === undefined) return null;
  const { type } = (thinking ?? {}) as Partial<Thinking>;
  if (type !== undefined && !family.thinking.includes(type))
    return `"thinking.type.${type}" is not supported for this model. Use "thinking.type.${family.thinking[0]}" and "output_config.effort" to control thinking behavior.`;
  const isForced = ['any', 'tool'].includes((choice as { readonly type?: string } | undefined)?.type ?? '');
  if (isForced && !family.canBeForced) return 'tool_choice: forced tool use is not supported for this model.';
  if (isForced && type === 'enabled') return 'Thinking may not be enabled when tool_choice forces tool use.';
  const field = family.samples ? undefined : changedSampling(request);
  if (field !== undefined) return `\`${field}\` is not supported for this model.`;
  if (!family.prefills && messages.at(-1)?.role === 'assistant')
    return 'messages: the conversation must end with a user message for this model.';
  return contextFault(request, type) ?? (type === 'enabled' ? roundFault(messages) : null);
}

/** Returns the first sampling field with another value than the default. */
function changedSampling({ temperature, top_p: topP, top_k: topK }: CheckedRequest): string | undefined {
  if (temperature !== undefined && temperature !== 1) return 'temperature';
  if (topP !== undefined && topP < 0.99) return 'top_p';
  return topK === undefined ? undefined : 'top_k';
}

function contextFault({ context_management: context }: CheckedRequest, thinking: string | undefined): string | null {
  const { edits = [] } = (context ?? {}) as { readonly edits?: readonly { readonly type: string }[] };
  const clearing = edits.find(({ type }) => type.startsWith('clear_thinking'));
  if (clearing === undefined || thinking === 'enabled' || thinking === 'adaptive') return null;
  return `\`${clearing.type}\` strategy requires \`thinking\` to be enabled or adaptive`;
}

/** Checks the message of the model before results, which must begin with a thought if thoughts have a budget. */
function roundFault(messages: readonly Message[]): string | null {
  if (!blocksOf(messages.at(-1)).some(({ type }) => type === 'tool_result')) return null;
  const at = messages.findLastIndex(({ role }) => role === 'assistant');
  const [first] = blocksOf(messages[at]);
  if (first === undefined || /thinking/.test(first.type)) return null;
  return `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\` (thinking is enabled).`;
}

const maxBreakpoints = 4;

function cacheFault({ tools = [], system, messages }: CheckedRequest): string | null {
  const marked = [tools, Array.isArray(system) ? system : [], ...messages.map(blocksOf)].flat() as {
    readonly cache_control?: { readonly ttl?: string } | null;
  }[];
  const marks = marked.flatMap(({ cache_control: mark }) => mark ?? []);
  if (marks.length > maxBreakpoints)
    return `A maximum of ${maxBreakpoints} blocks with cache_control may be provided. Found ${marks.length}.`;
  const isLate = marks.some(({ ttl }, at) => ttl === '1h' && marks.slice(0, at).some((mark) => mark.ttl !== '1h'));
  return isLate
    ? "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
    : null;
}

function firstFault<T>(items: readonly T[], faultOf: (item: T, at: number) => string | null): string | null {
  for (const [at, item] of items.entries()) {
    const fault = faultOf(item, at);
    if (fault !== null) return fault;
  }
  return null;
}

function blocksOf(message: Message | undefined): readonly Block[] {
  const content = message?.content ?? [];
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Block[]);
}

function messagesFault(messages: readonly Message[]): string | null {
  const callIds = new Set<string>();
  return firstFault(messages, (message, at) => {
    const { content } = message;
    if (typeof content !== 'string' && !Array.isArray(content))
      return `messages.${at}.content: Input should be a valid list`;
    const blockFault = (block: Block, index: number) => faultOfBlock(block, `messages.${at}.content.${index}`, callIds);
    return firstFault(blocksOf(message), blockFault) ?? openCallFault(message, messages[at + 1], at);
  });
}

/** Adds the id of a call to `callIds`. */
function faultOfBlock(block: Block, place: string, callIds: Set<string>): string | null {
  const { type, text = '', id = '', name = '', tool_use_id: resultId = '' } = block;
  if (type === 'text') return textFault(text);
  if (type === 'tool_result' && !idForm.test(resultId))
    return `${place}.tool_result.tool_use_id: String should match pattern '${idForm.source}'`;
  if (type !== 'tool_use') return null;
  if (!idForm.test(id)) return `${place}.tool_use.id: String should match pattern '${idForm.source}'`;
  if (callIds.has(id)) return `${place}: \`tool_use\` ids must be unique`;
  callIds.add(id);
  return nameForm.test(name) ? null : `${place}.tool_use.name: String should match pattern '${nameForm.source}'`;
}

function textFault(text: string): string | null {
  if (text === '') return 'messages: text content blocks must be non-empty';
  return text.trim() === '' ? 'messages: text content blocks must contain non-whitespace text' : null;
}

function openCallFault(message: Message, next: Message | undefined, at: number): string | null {
  if (message.role !== 'assistant') return null;
  const results = new Set(blocksOf(next).map(({ tool_use_id: id }) => id));
  const calls = blocksOf(message).filter(({ type }) => type === 'tool_use');
  const open = calls.map(({ id }) => id).filter((id) => !results.has(id));
  if (open.length === 0) return null;
  return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}`;
}

function toolsFault(tools: NonNullable<CheckedRequest['tools']>): string | null {
  return firstFault(tools, ({ name, input_schema: schema }, at) => {
    const place = `tools.${at}.custom`;
    if (name !== undefined && !nameForm.test(name))
      return `${place}.name: String should match pattern '${nameForm.source}'`;
    return schemaFault((schema ?? {}) as Record<string, unknown>, `${place}.input_schema`);
  });
}

function schemaFault(schema: Readonly<Record<string, unknown>>, place: string): string | null {
  if (['oneOf', 'anyOf', 'allOf'].some((word) => schema[word] !== undefined))
    return `${place}: input_schema does not support oneOf, allOf, or anyOf at the top level`;
  const isOdd = Object.keys(schema.properties ?? {}).some((name) => !propertyForm.test(name));
  return isOdd ? `${place}.properties: Property keys should match pattern '${propertyForm.source}'` : null;
}

function samplingFault(request: CheckedRequest, rules: ModelRules): string | null {
  const { stop_sequences: stops = [], temperature, top_p, max_tokens: maxTokens, model } = request;
  if (stops.some((text) => text.trim() === '')) return 'stop_sequences: each stop sequence must contain non-whitespace';
  if (temperature !== undefined && (temperature < 0 || temperature > 1)) return 'temperature: range: 0..1';
  if (temperature !== undefined && top_p !== undefined && rules.allowsTopPBesideTemperature !== true)
    return '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
  if (rules.maxTokens !== undefined && maxTokens > rules.maxTokens)
    return `max_tokens: ${maxTokens} > ${rules.maxTokens}, which is the maximum allowed number of output tokens for ${model}`;
  return thinkingFault(request);
}

function thinkingFault({ thinking, temperature, max_tokens: maxTokens }: CheckedRequest): string | null {
  const { type, budget_tokens: budget = 0 } = (thinking ?? {}) as Partial<Thinking>;
  if (type !== 'enabled') return null;
  if (temperature !== undefined && temperature !== 1)
    return '`temperature` may only be set to 1 when thinking is enabled.';
  return maxTokens <= budget ? '`max_tokens` must be greater than `thinking.budget_tokens`.' : null;
}
