import { z } from 'zod';

const modelCapabilities = z
  .strictObject({
    tools: z.enum(['native', 'emulated']).optional().meta({
      description:
        'A request may have `tools`. `native`: the model CLI calls them itself; `emulated`: the service has the model call one at a time, by a JSON Schema. Left out if tools are switched off.',
    }),
    parallel_tools: z.boolean().optional().meta({ description: 'It may call several tools at once.' }),
    schema: z
      .boolean()
      .optional()
      .meta({ description: 'It enforces JSON Schemas itself; otherwise the schema is in the prompt.' }),
    sampling: z
      .boolean()
      .optional()
      .meta({ description: 'It takes `temperature`, `top_p` and the maximum of tokens.' }),
    images: z.boolean().meta({ description: 'A message may have images.' }),
    effort: z.boolean().meta({ description: 'A request may have an `effort`.' }),
    thinking: z.boolean().optional().meta({ description: 'The service passes on the thoughts of the model.' }),
  })
  .meta({ description: 'What a request for it may have besides text. Left out until the model CLI is known.' });
export type ModelCapabilities = z.infer<typeof modelCapabilities>;

export const modelEntry = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    default: z.boolean(),
    description: z.string().optional(),
    alias_of: z.string().optional().meta({ description: 'The model behind this name.' }),
    capabilities: modelCapabilities.optional(),
  })
  .meta({ id: 'Model' });
export type ModelEntry = z.infer<typeof modelEntry>;

const listFields = { count: z.int().nonnegative(), models: z.array(modelEntry) };

export const modelList = z.object(listFields);
export type ModelList = z.infer<typeof modelList>;

/** Model in the form of the OpenAI API. */
export const openAiModel = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  alias_of: z.string().optional(),
  capabilities: modelCapabilities.optional(),
});
export type OpenAiModel = z.infer<typeof openAiModel>;

export const modelsBody = z
  .strictObject({
    ...listFields,
    object: z.literal('list'),
    data: z.array(openAiModel).meta({ description: 'The same, as `GET /v1/models` has it.' }),
  })
  .meta({ id: 'Models' });
export type ModelsBody = z.infer<typeof modelsBody>;
