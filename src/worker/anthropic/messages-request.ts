import { invalid } from '../../shared/errors.js';
import type { Effort, ThinkingForm } from '../../shared/job.js';
import {
  fieldsOf,
  ignoredIn,
  type ParsedRequest,
  partFieldIn,
  type RequestedSchema,
  sdkRequest,
} from '../jobs/job-request.js';
import { foreignTypes } from '../jobs/message-parts.js';
import { type ParsedTools, parsedTools, type SentTool } from '../jobs/tool-offer.js';
import { clientToolOf } from './client-tools.js';
import { blocksIn, conversationIn, type MessagesRequest, messagesRequest } from './messages-content.js';

interface RequestedEffort {
  readonly value: Effort | undefined;
  /** Field that sets the effort; null if none does. */
  readonly field: string | null;
  /** Fields about effort that have no effect. */
  readonly ignored: readonly string[];
}

const byName: Readonly<Record<string, Effort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/** Effort for a thinking budget in tokens: the first entry whose `below` exceeds the budget, or `high` if none does. */
const byBudget = [
  { below: 4096, effort: 'low' },
  { below: 16_384, effort: 'medium' },
] as const;

/** Returns the effort: the named one, else one for the thinking budget. Unknown names are ignored. */
export function effortOf({ output_config: config, thinking }: MessagesRequest): RequestedEffort {
  const name = config?.effort ?? null;
  const named = name !== null && Object.hasOwn(byName, name) ? byName[name] : undefined;
  const budgeted = named === undefined ? effortForBudget(thinking) : undefined;
  const nameField = 'output_config.effort';
  const ignored = [
    ...(name !== null && named === undefined ? [nameField] : []),
    ...(thinking != null && !isOn(thinking) ? ['thinking'] : []),
    ...(named !== undefined && thinking?.budget_tokens != null ? ['thinking.budget_tokens'] : []),
  ];
  if (named !== undefined) return { value: named, field: nameField, ignored };
  return { value: budgeted, field: budgeted === undefined ? null : 'thinking', ignored };
}

function isOn({ type }: NonNullable<MessagesRequest['thinking']>): boolean {
  return type === 'enabled' || type === 'adaptive';
}

/**
 * Returns the form of thoughts. Setting effort also shows thinking, unless thinking is off or its `display` is
 * `omitted`.
 */
function thinkingOf({ thinking }: MessagesRequest, { value }: RequestedEffort): ThinkingForm | undefined {
  if (thinking == null ? value === undefined : !isOn(thinking)) return undefined;
  return thinking?.display === 'omitted' ? 'omitted' : 'summarized';
}

function effortForBudget(thinking: MessagesRequest['thinking']): Effort | undefined {
  if (thinking?.type !== 'enabled' || thinking.budget_tokens == null) return undefined;
  const { budget_tokens: tokens } = thinking;
  return byBudget.find(({ below }) => tokens < below)?.effort ?? 'high';
}

/** Fields that the service supports, or reports in `ineffectiveFields`. */
const known = fieldsOf(messagesRequest, 'metadata');
const knownOutput = new Set(['format', 'effort']);
const knownOfTool = new Set(['type', 'name', 'description', 'input_schema', 'strict']);

/**
 * Returns the job of a request. `isCounted`: whether only its tokens are counted. Throws `validation_error` for
 * unsupported requests.
 */
export function parseMessages(body: MessagesRequest, isCounted = false): ParsedRequest {
  const tools = toolsIn(body);
  const conversation = conversationIn(body, tools.offer !== undefined || isCounted, isCounted);
  const schema = schemaOf(body);
  const stop = schema === undefined ? (body.stop_sequences ?? []).filter((sequence) => sequence !== '') : [];
  const effort = effortOf(body);
  const thinking = thinkingOf(body, effort);
  return sdkRequest({
    body,
    known,
    conversation,
    tools,
    sampling: { temperature: body.temperature, topP: body.top_p, maxTokens: body.max_tokens || null },
    job: { schema, effort: effort.value, stop, thinking, stream: body.stream === true },
    wishFields: {
      temperature: 'temperature',
      topP: 'top_p',
      maxTokens: 'max_tokens',
      isParallel: 'tool_choice.disable_parallel_tool_use',
    },
    ignored: [
      ...ignoredIn('output_config', [body.output_config], knownOutput),
      ...ineffectiveFields(body, schema !== undefined),
      ...effort.ignored,
      ...ignoredInMessages(body),
    ],
    effortField: effort.field,
    imageField: imageFieldOf(body),
    schemaWish: null,
  });
}

/** Returns known fields that have no effect in this request. */
function ineffectiveFields(body: MessagesRequest, hasSchema: boolean): string[] {
  const { tools, tool_choice: choice, output_config: config, output_format: format, stop_sequences: stop } = body;
  const clientTools = (tools ?? []).filter(isClientTool);
  return [
    ...(choice != null && clientTools.length === 0 ? ['tool_choice'] : []),
    ...(format != null && config?.format != null ? ['output_format'] : []),
    ...((stop ?? []).length > 0 && hasSchema ? ['stop_sequences'] : []),
    ...ignoredIn('tools', clientTools, knownOfTool),
    ...ignoredIn('tool_choice', [choice], new Set(['type', 'name', 'disable_parallel_tool_use'])),
  ];
}

type OfferedTool = NonNullable<MessagesRequest['tools']>[number];

/** Whether the client runs the tool. Anthropic's servers would run all others. */
function isClientTool({ type }: OfferedTool): boolean {
  return type == null || type === 'custom' || clientToolOf(type) !== undefined;
}

/** Returns the offered tools. Throws `validation_error`. */
function toolsIn({ tools, tool_choice: choice }: MessagesRequest): ParsedTools {
  const isParallel = choice?.disable_parallel_tool_use !== true;
  return parsedTools((tools ?? []).map(sentTool), { choice: choiceIn(choice), path: 'tool_choice', isParallel });
}

function sentTool(tool: OfferedTool, index: number): SentTool {
  const { name, type, strict } = tool;
  const known = clientToolOf(type);
  const description = tool.description ?? known?.description;
  const schema = tool.input_schema ?? known?.schema;
  const kind = isClientTool(tool) ? 'function' : 'provider';
  return { path: `tools.${index}`, kind, type: type ?? 'custom', name, description, schema, strict };
}

function choiceIn(choice: MessagesRequest['tool_choice']) {
  if (choice == null || choice.type === 'auto') return 'auto';
  if (choice.type === 'none') return 'none';
  if (choice.type === 'any') return 'required';
  if (choice.type !== 'tool') throw invalid('tool_choice.type', 'must be auto, any, tool or none');
  if (choice.name == null) throw invalid('tool_choice.name', 'must be sent');
  return { name: choice.name };
}

function schemaOf({ output_config: config, output_format: older }: MessagesRequest): RequestedSchema | undefined {
  const [path, format] = config?.format != null ? ['output_config.format', config.format] : ['output_format', older];
  if (format == null) return undefined;
  if (format.type !== 'json_schema') throw invalid(`${path}.type`, 'must be json_schema');
  if (format.schema == null) throw invalid(`${path}.schema`, 'must be sent');
  return { path: `${path}.schema`, value: format.schema };
}

/** Returns the field of the first image, which may be in a result, or null if the request has no images. */
export function imageFieldOf({ messages }: MessagesRequest): string | null {
  const contents = messages.flatMap(({ content }, at) => {
    const field = `messages.${at}.content`;
    const inner = blocksIn([{ content }]).map((block, index) => [`${field}.${index}.content`, block.content] as const);
    return [[field, content] as const, ...inner];
  });
  return partFieldIn(contents, 'image');
}

const knownOfMessage = new Set(['role', 'content']);
const callFields = ['id', 'name', 'input', 'caller', 'tool_use_id', 'content', 'is_error'];
const knownOfBlock = new Set(['type', 'text', 'source', 'thinking', 'signature', 'data', ...callFields]);

const knownTypes = new Set([
  'text',
  'image',
  'tool_use',
  'tool_result',
  'tool_reference',
  'thinking',
  'redacted_thinking',
]);

/** Returns fields and blocks of the messages that the service ignores. */
export function ignoredInMessages({ messages, system }: MessagesRequest): string[] {
  const blocks = blocksIn(messages);
  const knownBlocks = blocks.filter(({ type }) => knownTypes.has(type));
  const resultBlocks = knownBlocks.flatMap(({ type, content }) =>
    type === 'tool_result' ? blocksIn([{ content }]) : [],
  );
  const modelImages = blocksIn(messages.filter(({ role }) => role === 'assistant')).filter(isImage);
  return [
    ...ignoredIn('system', blocksIn([{ content: system }]), knownOfBlock),
    ...ignoredIn('messages', messages, knownOfMessage),
    ...ignoredIn('messages.content', knownBlocks, knownOfBlock),
    ...foreignTypes('messages.content', [...blocks, ...resultBlocks], knownTypes),
    ...foreignTypes('messages.content', modelImages, new Set()),
  ];
}

function isImage({ type }: { readonly type: string }): boolean {
  return type === 'image';
}
