import { z } from 'zod';
import { answerSchema, model, modelText, structuredValue } from '../../shared/api/ask.js';
import { jobBody } from '../../shared/api/jobs.js';
import { modelEntry } from '../../shared/api/models.js';

/** Tools that programs can call through the Model Context Protocol. */

export const askArguments = z.strictObject({
  prompt: modelText.meta({ description: 'The prompt. The model sees no files and no conversation.' }),
  system: modelText.optional().meta({ description: 'Instructions before the prompt.' }),
  model: model.optional().meta({ description: 'A model that the tool `models` lists; without it the default one.' }),
  schema: answerSchema.optional(),
  background: z.boolean('must be true or false').optional().meta({
    description: 'Return the id of a job at once, for the tool `job`, instead of waiting for the answer.',
  }),
});

export const modelsArguments = z.strictObject({});

export const jobArguments = z.strictObject({
  job_id: z.string('must be a string').meta({ description: 'As `ask` has returned it.' }),
  cancel: z.boolean('must be true or false').optional().meta({ description: 'Cancel it, if it has not ended.' }),
});

const modelsOutput = z.strictObject({ models: z.array(modelEntry) });

const jobOutput = jobBody.omit({ result: true, error: true, request_id: true }).extend({
  response: z.string().optional().meta({ description: 'The answer of a job that has succeeded.' }),
  structured: structuredValue.optional(),
  error: z
    .strictObject({ code: z.string(), message: z.string() })
    .optional()
    .meta({ description: 'Why it has failed.' }),
});
export type JobOutput = z.infer<typeof jobOutput>;

interface ServedTool {
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodType;
  /** Left out if the form of the result varies. */
  readonly output?: z.ZodType;
  readonly annotations: Readonly<Record<string, boolean>>;
}

const tools = {
  ask: {
    title: 'Ask a model',
    description:
      'Asks a language model one prompt and returns its answer. With `schema` the answer is a value that fits this JSON Schema.',
    input: askArguments,
    annotations: { readOnlyHint: true, openWorldHint: true },
  },
  models: {
    title: 'List the models',
    description: 'Lists the models that `ask` can use.',
    input: modelsArguments,
    output: modelsOutput,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  job: {
    title: 'Look at a job',
    description: 'Returns the state of a background job and, once it has succeeded, its answer. Can cancel it.',
    input: jobArguments,
    output: jobOutput,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
} as const satisfies Readonly<Record<string, ServedTool>>;

export const toolNames = Object.keys(tools);

/** Returns the tools for `tools/list`. */
export function listedTools(): object[] {
  return Object.entries<ServedTool>(tools).map(([name, { title, description, input, output, annotations }]) => ({
    name,
    title,
    description,
    inputSchema: jsonSchemaOf(input),
    ...(output && { outputSchema: jsonSchemaOf(output) }),
    annotations,
  }));
}

/** Removes `$schema`, because some validators support only draft 7. */
function jsonSchemaOf(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}
