import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import { type Effort, imageTypes, type ThinkingForm } from '../../shared/job.js';
import type { RequestedSchema } from '../../worker/jobs/job-request.js';
import { imageOf, type ShownPart } from '../../worker/jobs/message-parts.js';
import { imageOfUrl, stopSequence, stopSequences, wantedModel } from '../doors/messages.js';
import { fieldsOf, ignoredIn } from '../doors/request-fields.js';
import { temperature, topP } from '../doors/tool-offer.js';

/** Fields that both endpoints for answers share. */

const mustBeLevel = 'must be true, false, low, medium, high, xhigh or max';
const mustBeBoolean = 'must be true or false';

/** Limit of tokens. A number below 1 means that there is no limit: -1 is infinite, -2 fills the context. */
const numPredict = z.int('must be a whole number');

const options = z.looseObject(
  {
    num_predict: numPredict.nullish(),
    temperature: temperature.nullish(),
    top_p: topP.nullish(),
    stop: z
      .union([stopSequence, stopSequences], 'must be text, or a list of 16 at most, each of 500 characters at most')
      .nullish(),
  },
  'must be an object',
);

const jsonSchema = z.record(z.string(), z.unknown());
const format = z.union([z.literal(''), z.literal('json'), jsonSchema], 'must be json, or a JSON Schema, an object');

export const images = z.array(z.string('must be base64'), 'must be a list');

export const commonFields = {
  model: wantedModel,
  /** true by default. */
  stream: z.boolean(mustBeBoolean).nullish(),
  format: format.nullish(),
  options: options.nullish(),
  think: z.union([z.boolean(), z.string()], mustBeLevel).nullish(),
  keep_alive: z.unknown().optional(),
};
const common = z.looseObject(commonFields);
type CommonRequest = z.infer<typeof common>;

const levels: Readonly<Record<string, Effort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
};

/** Returns neither thoughts nor effort if the client wants no thoughts. The model CLI may think nevertheless. */
function thinkingIn({ think }: CommonRequest): { thinking?: ThinkingForm; effort?: Effort } {
  if (think == null || think === false || think === '') return {};
  return { thinking: 'summarized', ...(think !== true && { effort: effortOf(think) }) };
}

function effortOf(think: string): Effort {
  const effort = Object.hasOwn(levels, think) ? levels[think] : undefined;
  if (effort === undefined) throw invalid('think', mustBeLevel);
  return effort;
}

function schemaIn({ format }: CommonRequest): RequestedSchema | undefined {
  if (format == null || format === '') return undefined;
  return { path: 'format', value: format === 'json' ? { type: 'object' } : format };
}

const knownOptions = fieldsOf(options);
const schemaWish = 'format: {"type": "object", "properties": …}';

/** Translates the fields that /api/chat and /api/generate have in common. Throws `validation_error`. */
export function wishesIn(body: CommonRequest) {
  const { options, format } = body;
  const schema = schemaIn(body);
  const stopTexts = [options?.stop ?? []].flat().filter((sequence) => sequence !== '');
  const { temperature, top_p: topP, num_predict: maxTokens } = options ?? {};
  return {
    job: {
      schema,
      ...thinkingIn(body),
      stop: schema === undefined ? stopTexts : [],
      stream: body.stream !== false,
    },
    sampling: { temperature, topP, maxTokens },
    wishFields: { temperature: 'options.temperature', topP: 'options.top_p', maxTokens: 'options.num_predict' },
    ignored: [
      ...ignoredIn('options', [options], knownOptions),
      ...(stopTexts.length > 0 && schema !== undefined ? ['options.stop'] : []),
    ],
    effortField: 'think',
    schemaWish: format === 'json' ? schemaWish : null,
  };
}

/** First characters of each image type in base64. */
const base64Prefixes = { 'image/png': 'iVBORw0KG', 'image/jpeg': '/9j/', 'image/gif': 'R0lGOD', 'image/webp': 'UklGR' };

/** Decodes the types of images from their bytes. Throws `validation_error`. */
export function imagesIn(sent: readonly string[], path: string): ShownPart[] {
  return sent.map((data, index) => {
    const at = `${path}.${index}`;
    if (data.startsWith('data:')) return imageOfUrl(data, at);
    const type = imageTypes.find((each) => data.startsWith(base64Prefixes[each]));
    if (type === undefined)
      throw invalid(at, 'must be a png, jpeg, gif or webp image in base64: the service does not fetch images');
    return imageOf(type, data, at);
  });
}
