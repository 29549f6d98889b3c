import { z } from 'zod';
import type { ModelCapabilities, ModelEntry } from '../../shared/api/models.js';
import { anthropicPrefix } from '../../shared/config/values.js';
import { allEfforts, type Effort } from '../../shared/job.js';
import { createdAt } from '../../worker/api/doors.js';
import type { ModelsContext } from '../../worker/features/feature.js';

/** Models in the form of Anthropic's API. */

export const modelSchema = z
  .strictObject({
    type: z.literal('model'),
    id: z
      .string()
      .meta({ description: 'Begins with `anthropic/` if the name contains neither `claude` nor `anthropic`.' }),
    display_name: z.string(),
    description: z.string().optional(),
    created_at: z.iso.datetime(),
    capabilities: z.looseObject({}).nullable(),
    max_input_tokens: z.int().positive().nullable(),
    max_tokens: z.int().positive().nullable(),
    lifecycle: z.literal('active'),
    deprecated_at: z.null(),
    retires_at: z.null(),
    line: z.null(),
    alias_of: z.string().optional(),
  })
  .meta({ id: 'AnthropicModel' });
type AnthropicModel = z.infer<typeof modelSchema>;

export const modelsSchema = z
  .strictObject({
    data: z.array(modelSchema),
    has_more: z.literal(false),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })
  .meta({ id: 'AnthropicModels' });
type AnthropicModels = z.infer<typeof modelsSchema>;

/** Claude Code shows only these names of a gateway, and drops all others. */
const shownByClaudeCode = /claude|anthropic/i;

/** Returns the id that a client of Anthropic's API sees. Requests may use it like the name itself. */
function anthropicId(id: string): string {
  return shownByClaudeCode.test(id) ? id : anthropicPrefix + id;
}

/** Returns the entry of a model with this id. */
export function anthropicModel(model: ModelEntry, context: ModelsContext, id = model.id): AnthropicModel {
  const { name, description, alias_of: target = id === model.id ? undefined : model.id } = model;
  return {
    type: 'model',
    id,
    display_name: name,
    created_at: createdAt(model, context).toISOString(),
    capabilities: model.capabilities === undefined ? null : capabilitiesOf(model.capabilities, context),
    max_input_tokens: model.max_input_tokens ?? null,
    max_tokens: model.max_tokens ?? null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    ...(description !== undefined && { description }),
    ...(target !== undefined && { alias_of: target }),
  };
}

export function anthropicList(models: readonly ModelEntry[], context: ModelsContext): AnthropicModels {
  const data = models.map((model) => ({ model, id: anthropicId(model.id) }));
  return {
    data: data.map(({ model, id }) => anthropicModel(model, context, id)),
    has_more: false,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}

const absent = { supported: false };

/** Types of thinking that requests to a model may have if its own are unknown. */
const thinkingTypes: readonly string[] = ['adaptive', 'disabled', 'enabled'];

/** Levels of an effort that the model does not list count as `high`. */
function capabilitiesOf(capabilities: ModelCapabilities, { modelAbilities }: ModelsContext): Record<string, unknown> {
  const { images, schema = false, pdf = false, citations = false, effort, thinking = false } = capabilities;
  const { efforts: levels = allEfforts, thinking_types: types = thinkingTypes } = capabilities;
  const works = { supported: effort };
  const thinks = { supported: thinking };
  const level = (name: Effort) => ({ supported: effort && levels.includes(name) });
  const type = (name: string) => ({ supported: thinking && types.includes(name) });
  return {
    batch: { supported: modelAbilities.includes('batch') },
    citations: { supported: citations },
    code_execution: absent,
    context_management: {
      supported: false,
      clear_thinking_20251015: null,
      clear_tool_uses_20250919: null,
      compact_20260112: null,
    },
    effort: { ...works, ...Object.fromEntries(allEfforts.map((name) => [name, level(name)])) },
    image_input: { supported: images },
    pdf_input: { supported: pdf },
    server_tools: { supported: false, code_execution: absent, web_search: absent },
    structured_outputs: { supported: schema },
    thinking: {
      ...thinks,
      types: {
        adaptive: type('adaptive'),
        between_tools: type('between_tools'),
        disabled: { supported: types.includes('disabled') },
        enabled: type('enabled'),
      },
    },
  };
}
