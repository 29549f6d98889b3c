import { invalid } from '../../../shared/errors.js';
import type { Asked } from '../door.js';
import { ignoredFields, ignoredIn } from '../ignored.js';
import { argumentsSchema } from '../tools.js';
import { formatIn } from './chat-format.js';
import { ignoredInMessages, imageFieldOf, spokenIn } from './chat-messages.js';
import type { ChatCompletionRequest } from './chat-schema.js';
import { toolsIn } from './chat-tools.js';
import { effortOf } from './options.js';

/** Fields that are followed, refused where they ask for too much, or said of below where they mean nothing. */
const known = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'stop',
  'n',
  'logprobs',
  'modalities',
  'response_format',
  'guided_json',
  'reasoning_effort',
  'tools',
  'tool_choice',
  'functions',
  'function_call',
]);

export interface AskedChat extends Asked {
  readonly wantsUsage: boolean;
  /** Whether a call is told as it was before there were tools. */
  readonly isLegacyCall: boolean;
}

const schemaWish =
  'response_format: {"type": "json_schema", "json_schema": {"name": …, "schema": …}} (Vercel AI SDK: supportsStructuredOutputs: true)';

/** The job that a chat completion asks for. Throws `validation_error` for what this service can't do. */
export function askedByChat(body: ChatCompletionRequest): AskedChat {
  refuseUnable(body);
  const { model } = body;
  const { system, asked, history } = spokenIn(body);
  const { called, isLegacy, field, ignored } = toolsIn(body);
  const format = formatIn(body, called !== null);
  const schema = called === null ? format.schema : { path: field, value: argumentsSchema(called) };
  const effort = effortOf(body.reasoning_effort);
  const stop = schema === undefined ? stopsOf(body) : [];
  const stream = body.stream === true;
  return {
    order: { text: asked.text, images: asked.images, history, system, model, schema, effort, stop, stream },
    model,
    tool: called?.name ?? null,
    ignored: [
      ...ignoredFields(body, known),
      ...ignored,
      ...format.ignored,
      ...meaningless(body, called !== null, schema !== undefined),
      ...ignoredInMessages(body),
    ],
    effortField: 'reasoning_effort',
    imageField: imageFieldOf(body),
    schemaWish: format.isBare ? schemaWish : null,
    wantsUsage: body.stream_options?.include_usage === true,
    isLegacyCall: isLegacy,
  };
}

function refuseUnable({ n, logprobs, top_logprobs, audio, modalities }: ChatCompletionRequest): void {
  if (n != null && n !== 1) throw invalid('n', 'must be 1: there is one answer');
  if (logprobs === true) throw invalid('logprobs', 'are not known here');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'are not known here');
  if (audio != null) throw invalid('audio', 'is not possible here');
  if (modalities?.some((each) => each !== 'text')) throw invalid('modalities', 'must be text alone');
}

const knownOfTool = new Set(['type', 'function']);

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: ChatCompletionRequest, isCall: boolean, hasSchema: boolean): string[] {
  const { reasoning_effort: effort, stream_options: options, tools } = body;
  return [
    ...(stopsOf(body).length > 0 && hasSchema ? ['stop'] : []),
    ...(effort != null && effortOf(effort) === undefined ? ['reasoning_effort'] : []),
    ...ignoredIn('stream_options', [options], new Set(['include_usage'])),
    ...(isCall ? ignoredIn('tools', tools ?? [], knownOfTool) : []),
  ];
}

function stopsOf({ stop }: ChatCompletionRequest): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  return sequences.filter((sequence) => sequence !== '');
}
