import { z } from 'zod';
import { issueWords } from '../../../../src/shared/text/issue-words.js';

it.each<[z.ZodType, unknown, string]>([
  [z.looseObject({}), 'x', 'must be an object'],
  [z.record(z.string(), z.unknown()), 5, 'must be an object'],
  [z.array(z.string()), 'x', 'must be a list'],
  [z.string(), null, 'must be a string'],
  [z.int(), 'x', 'must be a number'],
  [z.int(), 1.5, 'must be a whole number'],
  [z.boolean(), 'yes', 'must be true or false'],
  [z.enum(['a', 'b']), 'c', 'must be one of a, b'],
  [z.literal('a'), 'c', 'must be a'],
  [z.string().max(3), 'abcd', 'must be at most 3 characters'],
  [z.string().min(1), '', 'must not be empty'],
  [z.string().min(2), 'a', 'must be at least 2 characters'],
  [z.number().max(3), 4, 'must be at most 3'],
  [z.array(z.string()).min(1), [], 'must be at least 1'],
  [z.union([z.string(), z.array(z.string())]), 5, 'must be a string or a list'],
  [z.union([z.literal('a'), z.looseObject({ type: z.string() })]), {}, 'has an unknown form'],
  [z.string().regex(/a/), 'b', 'has an unknown form'],
  [z.string('must be a name'), 5, 'must be a name'],
])('The default message for an invalid value names the expected form: %#', (schema, value, words) => {
  expect(schema.safeParse(value, { error: issueWords }).error?.issues[0]?.message).toBe(words);
});
