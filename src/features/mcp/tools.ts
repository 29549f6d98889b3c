import { z } from 'zod';
import { answerSchema, model, modelText, structuredValue } from '../../shared/api/ask.js';
import { jobBody } from '../../shared/api/jobs.js';
import { modelEntry } from '../../shared/api/models.js';

/** Tools that this server offers by the Model Context Protocol. */

export const askArguments = z.strictObject({
  prompt: modelText.meta({ description: 'The prompt. The model sees no files and no conversation.' }),
  system: modelText.optional().meta({ description: 'Instructions before the prompt.' }),
  model: model.optional().meta({ description: 'A model that the tool `models` lists. Default: the default model.' }),
  schema: answerSchema.optional(),
  background: z.boolean('must be true or false').optional().meta({
    description: 'Whether to run a background job: the result is its id for the tool `job`, instead of the answer.',
  }),
});

export const modelsArguments = z.strictObject({});

export const jobArguments = z.strictObject({
  job_id: z.string('must be a string').meta({ description: 'The id that `ask` returned.' }),
  cancel: z
    .boolean('must be true or false')
    .optional()
    .meta({ description: 'Whether to cancel the job if it has not ended.' }),
});

const modelsOutput = z.strictObject({ models: z.array(modelEntry) });

const jobOutput = jobBody.omit({ result: true, error: true, request_id: true }).extend({
  response: z.string().optional().meta({ description: 'The answer, if the job has succeeded.' }),
  structured: structuredValue.optional(),
  error: z
    .strictObject({ code: z.string(), message: z.string() })
    .optional()
    .meta({ description: 'The error, if the job has failed.' }),
});
export type JobOutput = z.infer<typeof jobOutput>;

interface ServedTool {
  readonly title: string;
  readonly description: string;
  readonly input: z.ZodType;
  /** Schema of the result; missing if the form of the result varies. */
  readonly output?: z.ZodType;
  readonly annotations: Readonly<Record<string, boolean>>;
}

const tools = {
  ask: {
    title: 'Ask a model',
    description:
      'Sends one prompt to a language model and returns its answer. With `schema`, the answer is a value that matches this JSON Schema.',
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
    title: 'Get or cancel a job',
    description: 'Returns the state of a background job, and its answer if it has succeeded. Can cancel the job.',
    input: jobArguments,
    output: jobOutput,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
} as const satisfies Readonly<Record<string, ServedTool>>;

export type ToolName = keyof typeof tools;
export const toolNames = Object.keys(tools) as ToolName[];

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

/** Returns the JSON Schema without `$schema`, because some validators support only draft 7. */
function jsonSchemaOf(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}
