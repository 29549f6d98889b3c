import { invalid } from '../../shared/errors.js';
import type { Effort } from '../../shared/job.js';
import {
  fieldsOf,
  ignoredFields,
  ignoredIn,
  type ParsedRequest,
  partFieldIn,
  type RequestedSchema,
  sdkJob,
} from '../jobs/job-request.js';
import { argumentsSchema, calledTool, type OfferedTool, type ToolWish } from '../jobs/message-parts.js';
import { blocksIn, type MessagesRequest, messagesRequest, spokenIn } from './messages-content.js';

interface AskedEffort {
  readonly value: Effort | undefined;
  /** The field that it comes from; null if none was sent. */
  readonly field: string | null;
  /** Fields about effort that mean nothing. */
  readonly ignored: readonly string[];
}

const byName: Readonly<Record<string, Effort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

/** Of the tokens to think with: those of a budget below `below` are this effort. */
const byBudget = [
  { below: 4096, effort: 'low' },
  { below: 16_384, effort: 'medium' },
] as const;

/** How hard the model is to think: by name, else by the tokens it may think with. Any other wish is ignored. */
export function effortOf({ output_config: config, thinking }: MessagesRequest): AskedEffort {
  const name = config?.effort ?? null;
  const named = name !== null && Object.hasOwn(byName, name) ? byName[name] : undefined;
  const budgeted = named === undefined ? ofBudget(thinking) : undefined;
  const nameField = 'output_config.effort';
  const ignored = [
    ...(name !== null && named === undefined ? [nameField] : []),
    ...(thinking != null && budgeted === undefined ? ['thinking'] : []),
  ];
  if (named !== undefined) return { value: named, field: nameField, ignored };
  return { value: budgeted, field: budgeted === undefined ? null : 'thinking', ignored };
}

function ofBudget(thinking: MessagesRequest['thinking']): Effort | undefined {
  if (thinking?.type !== 'enabled' || thinking.budget_tokens == null) return undefined;
  const { budget_tokens: tokens } = thinking;
  return byBudget.find(({ below }) => tokens < below)?.effort ?? 'high';
}

/** Fields that are followed, or named below where they mean nothing. */
const known = fieldsOf(messagesRequest, 'metadata');
const knownOutput = new Set(['format', 'effort']);
const knownOfTool = new Set(['type', 'name', 'description', 'input_schema', 'strict']);

/** The job that a request for a message asks for. Throws `validation_error` for what this service can't do. */
export function parseMessages(body: MessagesRequest): ParsedRequest {
  const { system, asked, history } = spokenIn(body);
  const { model, stop_sequences: sequences } = body;
  const called = calledTool(toolsOf(body), wishOf(body));
  const schema = called === null ? schemaOf(body) : { path: 'tools', value: argumentsSchema(called) };
  const stop = schema === undefined ? (sequences ?? []).filter((sequence) => sequence !== '') : [];
  const effort = effortOf(body);
  const stream = body.stream === true;
  return {
    job: sdkJob({
      text: asked.text,
      images: asked.images,
      history,
      system,
      model,
      schema,
      effort: effort.value,
      stop,
      stream,
    }),
    model,
    tool: called?.name ?? null,
    ignored: [
      ...ignoredFields(body, known),
      ...ignoredIn('output_config', [body.output_config], knownOutput),
      ...meaningless(body, called !== null, schema !== undefined),
      ...effort.ignored,
      ...ignoredInMessages(body),
    ],
    effortField: effort.field,
    imageField: imageFieldOf(body),
    schemaWish: null,
  };
}

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: MessagesRequest, isCall: boolean, hasSchema: boolean): string[] {
  const { tools, tool_choice: choice, output_config: config, output_format: format, stop_sequences: stop } = body;
  const isSent = isCall && (tools ?? []).every(isOfCaller);
  return [
    ...((tools ?? []).length > 0 && !isSent ? ['tools'] : []),
    ...(choice != null && !isCall ? ['tool_choice'] : []),
    ...(config?.format != null && isCall ? ['output_config.format'] : []),
    ...(format != null && (isCall || config?.format != null) ? ['output_format'] : []),
    ...((stop ?? []).length > 0 && hasSchema ? ['stop_sequences'] : []),
    ...(isSent ? ignoredIn('tools', tools ?? [], knownOfTool) : []),
    ...(isCall ? ignoredIn('tool_choice', [choice], new Set(['type', 'name'])) : []),
  ];
}

type SentTool = NonNullable<MessagesRequest['tools']>[number];

/** Any other tool is one that Anthropic's servers run. */
function isOfCaller({ type }: SentTool): boolean {
  return type == null || type === 'custom';
}

function toolsOf({ tools }: MessagesRequest): OfferedTool[] {
  return (tools ?? []).flatMap((tool, index) => {
    const { name, description, input_schema: schema } = tool;
    if (!isOfCaller(tool)) return [];
    if (name == null) throw invalid(`tools.${index}.name`, 'must be sent');
    return [{ name, description: description ?? undefined, schema: schema ?? undefined }];
  });
}

function wishOf({ tool_choice: choice }: MessagesRequest): ToolWish {
  if (choice == null || choice.type === 'auto' || choice.type === 'none') return { kind: 'free' };
  if (choice.type === 'any') return { kind: 'any' };
  if (choice.type !== 'tool') throw invalid('tool_choice.type', 'must be auto, any, tool or none');
  if (choice.name == null) throw invalid('tool_choice.name', 'must be sent');
  return { kind: 'named', name: choice.name };
}

function schemaOf({ output_config: config, output_format: older }: MessagesRequest): RequestedSchema | undefined {
  const [path, format] = config?.format != null ? ['output_config.format', config.format] : ['output_format', older];
  if (format == null) return undefined;
  if (format.type !== 'json_schema') throw invalid(`${path}.type`, 'must be json_schema');
  if (format.schema == null) throw invalid(`${path}.schema`, 'must be sent');
  return { path: `${path}.schema`, value: format.schema };
}

/** The field of the first image, which may be in a result; null without images. */
export function imageFieldOf({ messages }: MessagesRequest): string | null {
  const contents = messages.flatMap(({ content }, at) => {
    const field = `messages.${at}.content`;
    const inner = blocksIn([{ content }]).map((block, index) => [`${field}.${index}.content`, block.content] as const);
    return [[field, content] as const, ...inner];
  });
  return partFieldIn(contents, 'image');
}

const knownOfMessage = new Set(['role', 'content']);
const ofCalls = ['id', 'name', 'input', 'caller', 'tool_use_id', 'content', 'is_error'];
const knownOfBlock = new Set(['type', 'text', 'source', 'thinking', 'signature', 'data', ...ofCalls]);

/** Fields of the messages that mean nothing here. */
export function ignoredInMessages({ messages, system }: MessagesRequest): string[] {
  return [
    ...ignoredIn('system', blocksIn([{ content: system }]), knownOfBlock),
    ...ignoredIn('messages', messages, knownOfMessage),
    ...ignoredIn('messages.content', blocksIn(messages), knownOfBlock),
  ];
}
