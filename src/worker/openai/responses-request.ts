import { invalid } from '../../shared/errors.js';
import {
  fieldsOf,
  ignoredFields,
  ignoredIn,
  type ParsedRequest,
  type RequestedSchema,
  sdkJob,
} from '../jobs/job-request.js';
import { argumentsSchema, calledTool, type OfferedTool, type ToolWish } from '../jobs/message-parts.js';
import { effortOf, schemaOf } from './content.js';
import { ignoredInInput, imageFieldOf, type ResponsesRequest, responsesRequest, spokenIn } from './responses-input.js';

/** Fields that are followed, refused where they ask for too much, or named below where they mean nothing. */
const known = fieldsOf(responsesRequest, 'user');

const effortField = 'reasoning.effort';
const schemaWish = 'text.format: {"type": "json_schema", "name": …, "schema": …}';

/** The job that a request for a response asks for. Throws `validation_error` for what this service can't do. */
export function parseResponses(body: ResponsesRequest): ParsedRequest {
  refuseUnable(body);
  const { model } = body;
  const { system, asked, history } = spokenIn(body);
  const called = calledTool(toolsOf(body), wishOf(body));
  const schema = called === null ? formatOf(body) : { path: 'tools', value: argumentsSchema(called) };
  const effort = effortOf(body.reasoning?.effort);
  const stream = body.stream === true;
  return {
    job: sdkJob({ text: asked.text, images: asked.images, history, system, model, schema, effort, stream }),
    model,
    tool: called?.name ?? null,
    ignored: [
      ...ignoredFields(body, known),
      ...ignoredIn('text', [body.text], new Set(['format'])),
      ...ignoredIn('reasoning', [body.reasoning], new Set(['effort'])),
      ...meaningless(body, called !== null),
      ...ignoredInInput(body),
    ],
    effortField,
    imageField: imageFieldOf(body),
    schemaWish: called === null && isBare(body) ? schemaWish : null,
  };
}

/** Whether the answer is to be a JSON object that nothing more is said of. */
function isBare({ text }: ResponsesRequest): boolean {
  return text?.format?.type === 'json_object' && text.format.schema == null;
}

function refuseUnable({ top_logprobs, prompt, ...body }: ResponsesRequest): void {
  for (const field of ['previous_response_id', 'conversation'] as const) {
    if (body[field] != null)
      throw invalid(field, 'is not possible: nothing is kept here. Send the whole conversation as input');
  }
  if (prompt != null) throw invalid('prompt', 'is not possible: no templates are kept here');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'are not known here');
}

const knownOfTool = new Set(['type', 'name', 'description', 'parameters', 'strict']);

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: ResponsesRequest, isCall: boolean): string[] {
  const { tools, tool_choice: choice, reasoning, text } = body;
  const knownOfFormat = new Set(['type', ...(text?.format?.type === 'text' ? [] : ['name', 'schema', 'strict'])]);
  const isToolIgnored = (tools ?? []).some((tool) => !isCall || !isFunction(tool));
  const format = text?.format?.type ?? 'text';
  return [
    ...(isToolIgnored ? ['tools'] : []),
    ...(choice != null && !isCall ? ['tool_choice'] : []),
    ...(format !== 'text' && isCall ? ['text.format'] : ignoredIn('text.format', [text?.format], knownOfFormat)),
    ...(isCall ? ignoredIn('tools', (tools ?? []).filter(isFunction), knownOfTool) : []),
    ...(reasoning?.effort != null && effortOf(reasoning.effort) === undefined ? [effortField] : []),
  ];
}

type FlatTool = NonNullable<ResponsesRequest['tools']>[number];

/** Any other tool is one that OpenAI's servers run. */
function isFunction({ type }: FlatTool): boolean {
  return type === 'function';
}

function toolsOf({ tools }: ResponsesRequest): OfferedTool[] {
  return (tools ?? []).flatMap((tool, index) => {
    const { name, description, parameters } = tool;
    if (!isFunction(tool)) return [];
    if (name == null) throw invalid(`tools.${index}.name`, 'must be sent');
    return [{ name, description: description ?? undefined, schema: parameters ?? undefined }];
  });
}

function wishOf({ tool_choice: choice }: ResponsesRequest): ToolWish {
  if (choice === 'required') return { kind: 'any' };
  if (choice == null || typeof choice === 'string') return { kind: 'free' };
  return { kind: 'named', name: choice.name };
}

function formatOf({ text }: ResponsesRequest): RequestedSchema | undefined {
  const format = text?.format;
  const path = 'text.format';
  return format == null
    ? undefined
    : schemaOf({ type: format.type, path, schema: format.schema, schemaPath: `${path}.schema` });
}
