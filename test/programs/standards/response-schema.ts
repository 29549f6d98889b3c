import { z } from 'zod';

/** Schema of a response by Open Responses (2026-04-24), for the items and tools that this service has. */

const status = z.enum(['in_progress', 'completed', 'incomplete']);
const outputText = z.object({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.object({})),
  logprobs: z.array(z.object({})).optional(),
});
const summaryText = z.object({ type: z.literal('summary_text'), text: z.string() });
const refusal = z.object({ type: z.literal('refusal'), refusal: z.string() });

const item = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('message'),
    id: z.string(),
    status,
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.array(z.union([outputText, refusal])),
  }),
  z.object({
    type: z.literal('function_call'),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    status,
  }),
  z.object({ type: z.literal('reasoning'), id: z.string(), summary: z.array(summaryText) }),
]);

const tool = z.object({
  type: z.literal('function'),
  name: z.string(),
  description: z.string().nullable(),
  parameters: z.object({}).nullable(),
  strict: z.boolean().nullable(),
});
const chosenTool = z.object({ type: z.literal('function'), name: z.string().optional() });
const mode = z.enum(['none', 'auto', 'required']);

const format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string(),
    description: z.string().nullable(),
    schema: z.object({}).nullable(),
    strict: z.boolean(),
  }),
]);

const usage = z.object({
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  input_tokens_details: z.object({ cached_tokens: z.int(), cache_write_tokens: z.int() }),
  output_tokens_details: z.object({ reasoning_tokens: z.int() }),
});

export const response = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: z.string().nullable(),
  instructions: z.string().nullable(),
  output: z.array(item),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(tool),
  tool_choice: z.union([
    mode,
    chosenTool,
    z.object({ type: z.literal('allowed_tools'), tools: z.array(chosenTool), mode }),
  ]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format, verbosity: z.enum(['low', 'medium', 'high']).optional() }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.object({ effort: z.string().nullable(), summary: z.string().nullable() }).nullable(),
  user: z.string().optional(),
  usage: usage.nullable(),
  max_output_tokens: z.int().nullable(),
  max_tool_calls: z.int().nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
});

const ofPart = { item_id: z.string(), output_index: z.int(), content_index: z.int() };
const ofItem = { item_id: z.string(), output_index: z.int() };
const numbered = { sequence_number: z.int() };
const whole = (type: string) => z.object({ type: z.literal(type), ...numbered, response });

export const event = z.discriminatedUnion('type', [
  whole('response.created'),
  whole('response.in_progress'),
  whole('response.completed'),
  z.object({ type: z.literal('response.output_item.added'), ...numbered, output_index: z.int(), item }),
  z.object({ type: z.literal('response.output_item.done'), ...numbered, output_index: z.int(), item }),
  z.object({ type: z.literal('response.content_part.added'), ...numbered, ...ofPart, part: outputText }),
  z.object({ type: z.literal('response.content_part.done'), ...numbered, ...ofPart, part: outputText }),
  z.object({ type: z.literal('response.output_text.delta'), ...numbered, ...ofPart, delta: z.string() }),
  z.object({ type: z.literal('response.output_text.done'), ...numbered, ...ofPart, text: z.string() }),
  z.object({ type: z.literal('response.function_call_arguments.delta'), ...numbered, ...ofItem, delta: z.string() }),
  z.object({ type: z.literal('response.function_call_arguments.done'), ...numbered, ...ofItem, arguments: z.string() }),
]);
