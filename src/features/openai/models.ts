import { z } from 'zod';
import { type ModelEntry, modelCapabilities, modelSizes } from '../../shared/api/models.js';
import { createdAt } from '../../worker/api/doors.js';
import type { ModelsContext } from '../../worker/features/feature.js';

/** Models in the form of OpenAI's API. */

export const modelSchema = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  alias_of: z.string().optional(),
  capabilities: modelCapabilities.optional(),
  ...modelSizes,
});
type OpenAiModel = z.infer<typeof modelSchema>;

export const modelsSchema = z.strictObject({ object: z.literal('list'), data: z.array(modelSchema) });
type OpenAiModels = z.infer<typeof modelsSchema>;

export function openAiModels(models: readonly ModelEntry[], context: ModelsContext): OpenAiModels {
  return { object: 'list', data: models.map((model) => openAiModel(model, context)) };
}

export function openAiModel(model: ModelEntry, context: ModelsContext): OpenAiModel {
  const { id, alias_of: target, capabilities } = model;
  const { max_input_tokens: input, max_tokens: output } = model;
  return {
    id,
    object: 'model',
    created: Math.floor(createdAt(model, context).getTime() / 1000),
    owned_by: 'prompt-relay',
    ...(target !== undefined && { alias_of: target }),
    ...(capabilities !== undefined && { capabilities }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_tokens: output }),
  };
}
