import { z } from 'zod';
import { allEfforts } from '../job.js';

export const modelCapabilities = z
  .strictObject({
    tools: z.enum(['native', 'emulated']).optional().meta({
      description:
        'A request may have `tools`. `native`: the model CLI calls them itself; `emulated`: the service lets the model call one at a time, by a JSON Schema. Missing if tools are switched off.',
    }),
    parallel_tools: z.boolean().optional().meta({ description: 'The model may call several tools at once.' }),
    schema: z
      .boolean()
      .optional()
      .meta({ description: 'The model CLI enforces JSON Schemas itself; otherwise the prompt contains the schema.' }),
    sampling: z
      .boolean()
      .optional()
      .meta({ description: 'A request may have `temperature`, `top_p` and a maximum number of tokens.' }),
    images: z.boolean().meta({ description: 'A message may have images.' }),
    pdf: z.boolean().optional().meta({
      description: 'A message may have PDFs: the model CLI takes them, or pdftotext is installed on the host.',
    }),
    effort: z.boolean().meta({ description: 'A request may have an `effort`.' }),
    citations: z.boolean().optional().meta({ description: "An answer may cite documents, in Anthropic's API." }),
    thinking: z.boolean().optional().meta({ description: 'The service passes on the thoughts of the model.' }),
    thinking_types: z.array(z.string()).optional().meta({
      description:
        "Types of thinking that the API of the model accepts, in the words of Anthropic's API. Missing if unknown.",
    }),
    efforts: z.array(z.enum(allEfforts)).optional().meta({
      description:
        'Efforts of the model. Any other counts as the next lower one. Missing if unknown; `xhigh` and `max` then count as `high`.',
    }),
  })
  .meta({
    description: 'Features that a request for this model may use besides text. Missing until the model CLI is known.',
  });
export type ModelCapabilities = z.infer<typeof modelCapabilities>;

const tokenLimit = z.int().positive().optional();
export const modelSizes = {
  max_input_tokens: tokenLimit.meta({
    description: 'Tokens that fit into the context of the model. Missing until its CLI has reported it with an answer.',
  }),
  max_tokens: tokenLimit.meta({ description: 'Tokens of the longest answer. Missing until its CLI has reported it.' }),
};

export const modelEntry = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    default: z.boolean(),
    description: z.string().optional(),
    alias_of: z.string().optional().meta({ description: 'The model behind this name.' }),
    capabilities: modelCapabilities.optional(),
    ...modelSizes,
  })
  .meta({ id: 'Model' });
export type ModelEntry = z.infer<typeof modelEntry>;

export const modelList = z.object({ count: z.int().nonnegative(), models: z.array(modelEntry) });
export type ModelList = z.infer<typeof modelList>;
