import { z } from 'zod';
import { modelNamePattern } from './values.js';

/** A name that stands for a model. */
export interface ModelAlias {
  readonly name: string;
  readonly target: string;
}

/** As the name of an alias: every name that is nothing else. */
export const anyOther = '*';
/** As the name of a model: the model of a request that names none. */
export const defaultModelName = 'default';

const form = 'must be pairs such as gpt-4o-mini=haiku,*=default';

/** Names that stand for models, separated by commas. Whether the models are there is for their CLIs to say. */
export const modelAliases = z.string().transform((value, context): readonly ModelAlias[] => {
  const aliases: ModelAlias[] = [];
  for (const part of value.split(',').map((item) => item.trim())) {
    if (part === '') continue;
    const [name = '', target = ''] = part.split(/=(.*)/s).map((word) => word.trim());
    const fault = faultOf(name, target, aliases);
    if (fault !== null) {
      context.addIssue(fault);
      return z.NEVER;
    }
    aliases.push({ name, target });
  }
  return aliases;
});

function faultOf(name: string, target: string, before: readonly ModelAlias[]): string | null {
  const isName = name === anyOther || modelNamePattern.test(name);
  if (!isName || !modelNamePattern.test(target)) return form;
  if (name === defaultModelName) return 'must not map default: MODEL_API_DEFAULT_MODEL says what that is';
  return before.some((alias) => alias.name === name) ? `must not map ${name} twice` : null;
}
