import { z } from 'zod';
import { modelChoices } from '../config/values.js';
import { invalid } from '../errors.js';
import { allEfforts, type Image, imageTypes, passedModel } from '../job.js';
import { binaryTypes } from '../tables/document-types.js';
import { isLargeJson } from '../text/json-size.js';
import type { TurnFigures } from '../turn-figures.js';

type ImageType = Image['mediaType'];

/** First bytes of a file of each type, in hexadecimal. */
const signatures: Readonly<Record<ImageType, RegExp>> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/gif': /^47494638(37|39)61/,
  'image/webp': /^52494646.{8}57454250/,
};

/** Base64 length that covers the longest signature. */
const beginLength = 32;

/** Length of base64 that is checked at a time; a multiple of four. */
const pieceLength = 64 * 1024;

/**
 * Whether a text is base64. Decodes and encodes it, which is ten times faster than a search for wrong characters. The
 * last group may have bits that the encoder would not set.
 */
export function isBase64(data: string): boolean {
  if (data.length === 0 || data.length % 4 !== 0) return false;
  const end = data.length - 4;
  for (let at = 0; at < end; at += pieceLength) {
    const piece = data.slice(at, Math.min(end, at + pieceLength));
    if (Buffer.from(piece, 'base64').toString('base64') !== piece) return false;
  }
  return /^[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)$/.test(data.slice(end));
}

/** Returns the fault of an image; null if it is valid. A CLI would replace a broken image by a note to the model. */
export function imageFault(mediaType: ImageType, data: string): string | null {
  if (!isBase64(data)) return 'must be base64';
  const begin = Buffer.from(data.slice(0, beginLength), 'base64');
  return isImage(mediaType, begin) ? null : `is not a file of the type ${mediaType}`;
}

/** Whether a file begins like a file of this type. */
export function isImage(mediaType: ImageType, file: Buffer): boolean {
  return signatures[mediaType].test(file.toString('hex', 0, beginLength));
}

export const imageType = z.enum(imageTypes, `must be one of ${imageTypes.join(', ')}`);

const fileId = z.string('must be a string').meta({
  description:
    'Id of a file that the client has uploaded to /v1/files with the purpose user_data, instead of `data` and `media_type`.',
});
const besideId = 'must not be sent together with file_id';

const requestImage = z
  .strictObject({
    media_type: imageType.optional(),
    data: z.string('must be a string').optional().meta({ description: 'The file in base64.' }),
    file_id: fileId.optional(),
  })
  .superRefine(({ media_type, data, file_id }, context) => {
    const isUploaded = file_id !== undefined;
    for (const [field, value] of Object.entries({ media_type, data })) {
      const message = isUploaded ? besideId : 'must be sent';
      if ((value !== undefined) === isUploaded) context.addIssue({ code: 'custom', path: [field], message });
    }
    const message = media_type && data !== undefined ? imageFault(media_type, data) : null;
    if (message !== null) context.addIssue({ code: 'custom', path: ['data'], message });
  })
  .meta({ id: 'Image', description: 'An image with `media_type` and `data`, or with `file_id`.' });

export const maxImages = 100;

/** Images before the text. */
export const requestImages = z
  .array(requestImage, 'must be a list')
  .max(maxImages, `must be at most ${maxImages} images`)
  .meta({ description: 'Images for the model, before the text. 400 if the model CLI does not accept images.' });

/** Maximum number of documents in a request of any API. */
export const maxDocuments = 20;

const requestFile = z
  .strictObject({
    name: z.string('must be a string').optional().meta({ description: 'Name of the file, which the model sees.' }),
    media_type: z
      .string('must be a string')
      .optional()
      .meta({
        description: `${binaryTypes.join(', ')}, or a type of text. Default: application/pdf with \`data\`, text/plain with \`text\`.`,
      }),
    data: z.string('must be a string').optional().meta({ description: 'The file in base64.' }),
    text: z.string('must be a string').optional().meta({ description: 'The text of the file, instead of `data`.' }),
    file_id: fileId.optional(),
  })
  .refine(
    ({ data, text, file_id }) => [data, text, file_id].filter((each) => each !== undefined).length === 1,
    'must have one of data, text and file_id',
  )
  .refine(({ media_type, file_id }) => media_type === undefined || file_id === undefined, {
    path: ['media_type'],
    message: besideId,
  })
  .meta({ id: 'File', description: 'A document with one of `data`, `text` and `file_id`.' });

/** Documents before the text. */
export const requestFiles = z
  .array(requestFile, 'must be a list')
  .max(maxDocuments, `must be at most ${maxDocuments} files`)
  .meta({
    description:
      'Documents for the model, before the prompt: PDFs of at most 32 MB and 100 pages, and texts. A model CLI that takes no PDFs gets their text. 400 if pdftotext is not installed.',
  });

/** Text for a model, which is sent unchanged: only text that cannot be sent is rejected. */
export const modelText = z
  .string('must be a string')
  .refine((value) => value.trim() !== '', 'must not be empty')
  .refine((value) => !value.includes('\0'), 'must not contain NUL')
  .refine((value) => !/\p{Surrogate}/u.test(value), 'must not contain a lone surrogate');

/** Name of a model, as GET /models lists it or as the CLI accepts it. */
export const model = modelChoices.meta({
  description:
    'The model to ask, or an alias. After it, separated by commas, models that answer if it cannot. Default: the default model.',
  examples: ['default'],
});

export const streamFlag = z.boolean('must be true or false').meta({
  description: 'Whether the answer is sent as server-sent events. Default: the Accept header decides.',
});

export const thoughtsFlag = z.boolean('must be true or false').meta({
  description:
    'Whether the answer includes the thoughts of the model, if its model CLI shows them (`capabilities.thinking` in GET /models). Default: false.',
});

export const maxSchemaBytes = 64 * 1024;

/** JSON schema with an object at its root. ajv checks later whether it is a valid schema. */
export const answerSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object').meta({
  description: `A JSON Schema of at most ${maxSchemaBytes / 1024} KB, with an object at its root: the answer is a value that fits it.`,
  examples: [{ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }],
});

export const effort = z.enum(allEfforts, `must be one of ${allEfforts.join(', ')}`).meta({
  description:
    'Reasoning effort of the model. 400 if the model CLI has no such option. If the model does not have this effort, it gets the next lower one, and `X-Ignored-Parameters` has `effort`.',
});

/** Returns the schema as JSON for a job. `path`: its path in the request. Throws `validation_error`. */
export function schemaText(schema: Readonly<Record<string, unknown>>, path: string): string {
  const text = checkedJson(schema, path);
  if (!isOfObjects(schema)) throw invalid(path, 'must have an object at its root: "type": "object"');
  return text;
}

/** Returns a schema as JSON. Throws `validation_error` if it is too large to be translated and checked. */
export function checkedJson(schema: object, path: string): string {
  const text = jsonOf(schema, path);
  if (text === null || Buffer.byteLength(text) > maxSchemaBytes)
    throw invalid(path, `must be at most ${maxSchemaBytes} bytes of JSON`);
  checkPatterns(text, path);
  return text;
}

/** Returns a schema as JSON; null if it is much too large. */
function jsonOf(schema: object, path: string): string | null {
  try {
    return isLargeJson(schema, maxSchemaBytes) ? null : JSON.stringify(schema);
  } catch {
    throw invalid(path, 'is nested too deeply');
  }
}

/** Limit of `\p{…}` in the schemas of a request: V8 reads each in 0.1 ms, a thousand times as long as other characters. */
const maxUnicodeClasses = 100;
/** Matches `\p{` and `\P{` of a pattern in JSON. */
const unicodeClass = /\\\\p\{/gi;

/** Throws `validation_error` if the patterns in the JSON of schemas take long to read. */
export function checkPatterns(json: string, path: string): void {
  const count = json.match(unicodeClass)?.length ?? 0;
  if (count > maxUnicodeClasses) throw invalid(path, `must have at most ${maxUnicodeClasses} \\p{…} in its patterns`);
}

/** Whether the schema describes objects. A root with a reference is accepted here, because ajv checks it later. */
function isOfObjects({ type, $ref: reference, properties }: Readonly<Record<string, unknown>>): boolean {
  return type === 'object' || (type === undefined && (properties !== undefined || reference !== undefined));
}

export const askRequest = z
  .strictObject({
    prompt: modelText.meta({ description: 'The prompt.', examples: ['Hello, my name is Ada'] }),
    system: modelText.optional().meta({ description: 'Instructions before the prompt.' }),
    model: model.optional(),
    schema: answerSchema.optional(),
    images: requestImages.optional(),
    files: requestFiles.optional(),
    effort: effort.optional(),
    thoughts: thoughtsFlag.optional(),
    stream: streamFlag.optional(),
  })
  .meta({ id: 'AskRequest' });
export type AskRequest = z.infer<typeof askRequest>;

/** Tokens and cost that the model CLI reports; null for a figure that it does not report. */
export const usageBody = z
  .strictObject({
    input_tokens: z.int().nonnegative().nullable(),
    output_tokens: z.int().nonnegative().nullable(),
    cost_usd: z.number().nonnegative().optional(),
  })
  .meta({ id: 'Usage', description: 'The value that the model CLI reports; null if it reports none.' });

type UsageBody = z.infer<typeof usageBody>;

/** Returns null if the CLI reports no figures. */
export function usageOf({ inputTokens, outputTokens, costUsd }: TurnFigures['usage']): UsageBody | null {
  if (inputTokens === null && outputTokens === null && costUsd === null) return null;
  return { input_tokens: inputTokens, output_tokens: outputTokens, ...(costUsd !== null && { cost_usd: costUsd }) };
}

export const structuredValue = z
  .record(z.string(), z.unknown())
  .meta({ description: 'With `schema`: the answer as a JSON value that fits it.' });

export const incomplete = z.literal(true).meta({
  description: 'The answer has no end: the model reached an output limit, or the client has ended it early.',
});

export const shownThoughts = z.string().meta({
  description:
    'With `thoughts: true`: what the model has thought, with a blank line between two thoughts. Missing if it shows none.',
});

export const fallbackField = z.array(passedModel).meta({
  description:
    'Models that could not answer, in order, and why: `model` is the one that did. See `MODEL_API_FALLBACKS`.',
});

export const askResult = z
  .strictObject({
    success: z.literal(true),
    response: z.string(),
    structured: structuredValue.optional(),
    incomplete: incomplete.optional(),
    thoughts: shownThoughts.optional(),
    model: z.string().nullable(),
    fallback: fallbackField.optional(),
    usage: usageBody.nullable(),
    queue_ms: z.int().nonnegative(),
    duration_ms: z.int().nonnegative(),
    request_id: z.string(),
  })
  .meta({ id: 'AskResult' });
export type AskResult = z.infer<typeof askResult>;
