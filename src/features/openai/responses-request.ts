import { invalid } from '../../shared/errors.js';
import type { ContinuedText, Effort, ThinkingForm } from '../../shared/job.js';
import type { ParsedRequest, RequestedSchema } from '../../worker/jobs/job-request.js';
import { fieldsOf, ignoredIn } from '../doors/request-fields.js';
import { sdkRequest } from '../doors/sdk-request.js';
import {
  nameOf,
  type ParsedTools,
  parsedTools,
  type SentTool,
  type ToolWish,
  withoutTextFormat,
} from '../doors/tool-offer.js';
import { isWebSearch, webSearchIn } from '../doors/web-search.js';
import { effortOf, schemaOf } from './content.js';
import {
  conversationIn,
  ignoredInInput,
  type ResponsesRequest,
  requestAttachments,
  responsesRequest,
  type ToolList,
  toolLists,
} from './responses-input.js';

/** Fields that the service supports, refuses, or reports in `ineffectiveFields`. */
const known = fieldsOf(responsesRequest, 'user');

const effortField = 'reasoning.effort';
const schemaWish = 'text.format: {"type": "json_schema", "name": …, "schema": …}';

/**
 * Returns the job of a request. `earlier`: the stored response that the request continues. Throws `validation_error`
 * for unsupported requests.
 */
export function parseResponses(body: ResponsesRequest, earlier: ContinuedText | null = null): ParsedRequest {
  refuseUnsupported(body);
  const tools = toolsIn(body);
  const conversation = conversationIn(body, tools.offer !== undefined, earlier);
  const schema = formatOf(body);
  const effort = effortOf(body.reasoning?.effort);
  const thinking = thinkingOf(body, effort);
  return sdkRequest({
    body,
    known,
    conversation,
    tools,
    sampling: { temperature: body.temperature, topP: body.top_p, maxTokens: body.max_output_tokens },
    job: { schema, effort, thinking, earlier: earlier ?? undefined, stream: body.stream === true },
    wishFields: {
      temperature: 'temperature',
      topP: 'top_p',
      maxTokens: 'max_output_tokens',
      isParallel: 'parallel_tool_calls',
    },
    ignored: [
      ...ignoredIn('text', [body.text], new Set(['format'])),
      ...ignoredIn('reasoning', [body.reasoning], new Set(['effort', 'summary'])),
      ...ineffectiveFields(body),
      ...ignoredInInput(body),
    ],
    effortField,
    ...requestAttachments(body),
    schemaWish: isBare(body) ? schemaWish : null,
  });
}

/**
 * Returns the form of thoughts. Without a requested summary, they only mark the places at which the model has thought.
 */
function thinkingOf({ reasoning }: ResponsesRequest, effort: Effort | undefined): ThinkingForm | undefined {
  if (reasoning?.summary != null && summaries.has(reasoning.summary)) return 'summarized';
  return effort === undefined ? undefined : 'omitted';
}

const summaries: ReadonlySet<string> = new Set(['auto', 'concise', 'detailed']);

/** Whether the request requires a JSON object without a schema. */
function isBare({ text }: ResponsesRequest): boolean {
  return text?.format?.type === 'json_object' && text.format.schema == null;
}

function refuseUnsupported({ top_logprobs, prompt, ...body }: ResponsesRequest): void {
  if (body.conversation != null && body.conversation !== '')
    throw invalid('conversation', 'is not supported: send the whole conversation as input, or previous_response_id');
  if (prompt != null) throw invalid('prompt', 'is not supported: the service stores no templates');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'is not supported');
}

const knownOfTool = new Set(['type', 'name', 'description', 'parameters', 'strict', 'tools']);

const knownOfSearch = new Set(['type', 'filters']);

/** Returns known fields that have no effect in this request. */
function ineffectiveFields(body: ResponsesRequest): string[] {
  const { tool_choice: choice, parallel_tool_calls: parallel, reasoning, text } = body;
  const knownOfFormat = new Set(['type', ...(text?.format?.type === 'text' ? [] : ['name', 'schema', 'strict'])]);
  const sent = toolLists(body).flatMap(({ tools }) => tools);
  const clientTools = sent.filter(({ type }) => clientToolTypes.has(type));
  const searchTools = sent.filter(({ type }) => isWebSearch(type));
  return [
    ...(choice != null && clientTools.length === 0 ? ['tool_choice'] : []),
    ...(parallel != null && clientTools.length === 0 ? ['parallel_tool_calls'] : []),
    ...ignoredIn('text.format', [text?.format], knownOfFormat),
    ...ignoredIn('tools', clientTools.map(withoutTextFormat), knownOfTool),
    ...ignoredIn('tools.tools', clientTools.flatMap(({ tools }) => tools ?? []).map(withoutTextFormat), knownOfTool),
    ...ignoredIn('tools', clientTools.length === 0 ? searchTools : [], knownOfSearch),
    ...(reasoning?.effort != null && effortOf(reasoning.effort) === undefined ? [effortField] : []),
  ];
}

type FlatTool = ToolList['tools'][number];
type PlainTool = Pick<FlatTool, 'type' | 'name' | 'description' | 'parameters' | 'strict' | 'filters'>;

/** Types of the tools that the client runs. OpenAI's servers would run all others. */
const clientToolTypes: ReadonlySet<string> = new Set(['function', 'custom', 'namespace']);

/** Returns the offered tools. Throws `validation_error`. */
function toolsIn(body: ResponsesRequest): ParsedTools {
  const { tool_choice: choice, parallel_tool_calls: parallel } = body;
  const sent = toolLists(body).flatMap(({ path, tools }) =>
    tools.flatMap((tool, index) => sentTools(tool, `${path}.${index}`)),
  );
  return parsedTools(sent, { ...choiceIn(choice), path: 'tool_choice', isParallel: parallel !== false });
}

function choiceIn(choice: ResponsesRequest['tool_choice']): Pick<ToolWish, 'choice' | 'allowed'> {
  if (choice === 'any') return { choice: 'required' };
  if (choice == null || typeof choice === 'string') return { choice: choice ?? 'auto' };
  if (choice.type === 'function' || choice.type === 'custom') return { choice: { name: nameOf(choice) } };
  if (choice.type !== 'allowed_tools') return { choice: { name: choice.type } };
  const allowed = choice.tools.filter(({ type }) => clientToolTypes.has(type));
  return { choice: choice.mode, allowed: allowed.map(({ name, namespace }) => nameOf({ name, namespace })) };
}

function sentTools({ tools, ...tool }: FlatTool, path: string): SentTool[] {
  if (tool.type !== 'namespace') return [sentTool(tool, path)];
  return (tools ?? []).map((each, index) => ({
    ...sentTool(each, `${path}.tools.${index}`),
    namespace: tool.name ?? '',
  }));
}

function sentTool({ type, name, description, parameters: schema, strict, filters }: PlainTool, path: string): SentTool {
  const kind = type === 'function' || type === 'custom' ? type : 'provider';
  const search = isWebSearch(type) ? webSearchIn(filters ?? {}, path) : undefined;
  return { path, kind, type, name, description, schema, strict, search };
}

function formatOf({ text }: ResponsesRequest): RequestedSchema | undefined {
  const format = text?.format;
  const path = 'text.format';
  return format == null
    ? undefined
    : schemaOf({ type: format.type, path, schema: format.schema, schemaPath: `${path}.schema` });
}
