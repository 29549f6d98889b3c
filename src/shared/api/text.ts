import { z } from 'zod';
import { modelName } from '../config/values.js';

/** Text that goes to a model: byte for byte as sent, so only what can't be sent is refused. */
export const modelText = z
  .string('must be a string')
  .refine((value) => value.trim() !== '', 'must not be empty')
  .refine((value) => !value.includes('\0'), 'must not contain NUL')
  .refine((value) => !/\p{Surrogate}/u.test(value), 'must not contain a lone surrogate');

/** A model's name, as GET /models lists it or as the CLI knows it. */
export const model = modelName.meta({
  description: 'The model to ask, or a name that stands for it; without it the default one.',
  examples: ['default'],
});

export const streamFlag = z.boolean('must be true or false').meta({
  description: 'Whether the answer comes as server-sent events; without it the Accept header says.',
});
