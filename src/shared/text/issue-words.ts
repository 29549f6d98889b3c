/** Issue of a schema, as zod passes it to the function that makes the message. */
interface Issue {
  readonly code?: string | undefined;
  readonly [detail: string]: unknown;
}

const kinds: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

/**
 * Returns a message for each issue without a custom message, in words that do not require knowledge of the validator.
 */
export function issueWords(issue: Issue): string {
  const { code, expected, values, origin } = issue;
  const unit = origin === 'string' ? ' characters' : '';
  switch (code) {
    case 'invalid_type':
      return `must be ${kindOf(expected)}`;
    case 'invalid_value':
      return `must be ${(values as readonly unknown[]).length === 1 ? '' : 'one of '}${(values as readonly unknown[]).join(', ')}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unit}`;
    case 'too_small':
      if (origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return `must be at least ${issue.minimum}${unit}`;
    case 'invalid_union':
      return unionWords(issue.errors as readonly (readonly Issue[])[]);
    case 'unrecognized_keys':
      return 'has unknown fields';
    default:
      return 'has an unknown form';
  }
}

function kindOf(expected: unknown): string {
  return kinds[String(expected)] ?? 'of another type';
}

function unionWords(branches: readonly (readonly Issue[])[] = []): string {
  const first = branches.map(([issue]) => issue);
  const isOfType = first.every((issue) => issue?.code === 'invalid_type' && (issue.path as unknown[])?.length === 0);
  if (!isOfType || first.length === 0) return 'has an unknown form';
  return `must be ${[...new Set(first.map((issue) => kindOf(issue?.expected)))].join(' or ')}`;
}
